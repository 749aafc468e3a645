"""Modules of the package and of its tests are short enough to read in one go."""

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 400
REASON = f"Above {MAX_LINES} lines, because "
"""In the first five lines of a module, this begins the reason for which it is longer."""


def too_long(folder: Path) -> Iterator[str]:
    """Yield the modules above the limit that give no reason."""
    for path in sorted(folder.rglob("*.py")):
        lines = path.read_text().splitlines()
        if len(lines) > MAX_LINES and REASON not in " ".join(lines[:5]):
            yield f"{path.relative_to(folder)}: {len(lines)} lines"


@pytest.mark.parametrize("folder", ["jobs", "dags", "plugins", "tools", "tests"])
def test_modules_are_short(folder: str) -> None:
    assert list(too_long(ROOT / folder)) == []


def test_long_module_must_give_its_reason(tmp_path: Path) -> None:
    (tmp_path / "at_the_limit.py").write_text("pass\n" * MAX_LINES)
    (tmp_path / "above.py").write_text("pass\n" * (MAX_LINES + 1))
    (tmp_path / "with_reason.py").write_text(f'"""A table. {REASON}it is one."""\n' + "pass\n" * MAX_LINES)
    assert list(too_long(tmp_path)) == ["above.py: 401 lines"]
