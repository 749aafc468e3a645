"""The points at which a run can be killed: before and after each of its Delta commits. They are detected.

Every way in which Python reaches a Delta commit is watched, from any stage. A new table needs no entry here;
`watched` rejects a run with a commit that it has not noticed.
"""

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import deltalake
from deltalake import DeltaTable
from deltalake.table import TableAlterer, TableMerger, TableOptimizer
from pyspark.sql import DataFrameWriter

Side = Literal["before", "after"]
Strike = Callable[[int, Side], None]
METHODS: tuple[tuple[type, str], ...] = (
    (DeltaTable, "create"),
    (DeltaTable, "create_write_transaction"),
    (DeltaTable, "delete"),
    (DeltaTable, "update"),
    (TableAlterer, "add_columns"),
    (TableAlterer, "set_table_properties"),
    (TableMerger, "execute"),
    (TableOptimizer, "compact"),
    (DataFrameWriter, "save"),
)


class Killed(BaseException):
    """Ends a run as a kill would."""


class Commits:
    """The number of commits that a watched run has made so far."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def watched(strike: Strike, lake: Path | None = None) -> Iterator[Commits]:
    """Call `strike` with the number of a commit, from 1, before and after each one made inside.

    Commits of `strike` itself are not watched: another run may take place in it.

    Args:
        strike: is called with the number of the commit.
        lake: a folder whose logs must grow by exactly the commits noticed, if the body ends.
    """
    commits, struck = Commits(), False
    began = 0 if lake is None else _logged(lake)

    def counted(act: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            nonlocal struck
            if struck:
                return act(*arguments, **named)
            commits.count += 1
            number = commits.count
            try:
                struck = True
                strike(number, "before")
                struck = False
                result = act(*arguments, **named)
                struck = True
                strike(number, "after")
            finally:
                struck = False
            return result

        return run

    with ExitStack() as patches:
        for owner, name in METHODS:
            wrapped: Any = counted(getattr(owner, name))
            if name == "create":
                wrapped = staticmethod(wrapped)
            patches.enter_context(patch.object(owner, name, wrapped))
        # Imported by name, so patched in each module.
        for module in [module for name, module in sys.modules.items() if name.startswith("transom")]:
            if vars(module).get("write_deltalake") is deltalake.write_deltalake:
                wrapped = counted(deltalake.write_deltalake)
                patches.enter_context(patch.object(module, "write_deltalake", wrapped))
        yield commits
    if lake is not None:
        assert _logged(lake) - began == commits.count, "a commit is made in a way that is not watched"


def _logged(lake: Path) -> int:
    """Return the number of commits in the logs of a lake."""
    return sum(1 for _ in lake.glob("*/_delta_log/*.json"))


@contextmanager
def killed_at(number: int, side: Side = "before") -> Iterator[None]:
    """End the body at its n-th commit, as SIGKILL would: nothing is cleaned up."""

    def strike(at: int, on: Side) -> None:
        if (at, on) == (number, side):
            raise Killed

    with suppress(Killed), watched(strike):
        yield


def remains(lake: Path, run: Callable[[], object], copies: Path) -> Sequence[Path]:
    """Return every state in which SIGKILL can leave a lake during a run, each as a copy.

    A state lies between two commits; nothing visible to a reader changes there, which is checked. Each copy
    except the last also has the data files of the missing commit, as a writer leaves them.
    """
    actual: list[Path] = []
    stood: dict[Path, bytes] = {}

    def strike(number: int, side: Side) -> None:
        nonlocal stood
        if side == "before":
            assert number == 1 or _log(lake) == stood, "the lake has changed between two commits"
            stood = _log(lake)
            return
        actual.append(copies / f"before-{number}" / lake.name)
        _copy(lake, actual[-1])
        for entry in _log(lake).keys() - stood.keys():
            (actual[-1] / entry).unlink()
        stood = _log(lake)

    with watched(strike, lake):
        run()
    actual.append(copies / "after-all" / lake.name)
    _copy(lake, actual[-1])
    return actual


def _copy(lake: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(lake, to)


def _log(lake: Path) -> dict[Path, bytes]:
    """Return the current logs of a lake's tables."""
    return {
        path.relative_to(lake): path.read_bytes() for path in lake.glob("*/_delta_log/*") if path.is_file()
    }
