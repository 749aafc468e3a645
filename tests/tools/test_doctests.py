"""The examples in docstrings run."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

JOBS = Path(__file__).resolve().parents[2] / "jobs"
MODULES = [
    ".".join(path.relative_to(JOBS).with_suffix("").parts)
    for path in sorted(JOBS.glob("transom/**/*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_print(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert (result.failed, result.attempted > 0) == (0, True)
