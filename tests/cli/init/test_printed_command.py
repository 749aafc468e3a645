"""The command that `init` prints as the next step."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result


@pytest.mark.parametrize(
    ("named", "other", "expected"),
    [
        pytest.param(["a 6.log", "a 7.log"], "", "'{0}/a 6.log' '{0}/a 7.log'", id="few"),
        pytest.param(["a 06.log", "a 07.log", "a 08.log", "a 09.log"], "", "{0}/'a 0'*.log", id="many"),
        pytest.param(["a6", "a7", "a8", "a9"], "", "{0}/a*", id="no ending"),
        pytest.param(["a6", "a7", "a8", "a9"], "a5", "{0}/a6 {0}/a7 {0}/a8 {0}/a9", id="not all of a folder"),
        pytest.param(["6/a", "7/a", "8/a", "9/a"], "", "{0}/*/a", id="folders"),
        pytest.param(["6/a.6", "6/a.7", "7/a.6", "8/a.7"], "", "{0}/*/a.*", id="folders and names"),
        pytest.param(["6/a[6]", "7/a[6]", "8/a[6]", "9/a[6]"], "", "{0}/*/'a[6]'", id="signs of patterns"),
        pytest.param(
            ["6/a", "7/a", "8/a", "9/a"], "5/a", "{0}/6/a {0}/7/a {0}/8/a {0}/9/a", id="one more folder"
        ),
        pytest.param([".6", ".7", "x/8", "x/9"], "", "{0}/.6 {0}/.7 {0}/x/8 {0}/x/9", id="other depths"),
    ],
)
def test_printed_command_has_exactly_the_files_of_the_draft(
    run: Callable[..., Result], tmp_path: Path, named: list[str], other: str, expected: str
) -> None:
    for name in filter(None, (*named, other)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("".join(f"2024-05-01T10:00:{n:02}Z host {n}\n" for n in range(20)))
    result = run("init", *(tmp_path / name for name in named), "--output", tmp_path / "out.yaml")
    arguments = result.stdout.splitlines()[-1].partition(f"{tmp_path}/out.yaml ")[2]
    assert arguments == expected.format(tmp_path)
    command = ["sh", "-c", f"printf '%s\\n' {arguments}"]
    in_shell = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert in_shell.splitlines() == [str(tmp_path / name) for name in named]
