"""Which checks a test makes fail: declared beside the test, and compared with what has failed in it."""

from collections.abc import Callable, Iterable
from functools import wraps
from types import ModuleType
from typing import ParamSpec

from tests.support.stream_harness import StreamHarness
from transom.core.partitions import CheckResult
from transom.features.registry import BUILT_IN

P = ParamSpec("P")

_SEEN: set[str] = set()
"""The checks that have failed in the test that runs."""


def failed(harness: StreamHarness, stage: str) -> dict[str, CheckResult]:
    """The checks of a stage that failed, by name."""
    hours = {node.hour for node in harness.snapshot()}
    return {v.check: v for v in noted(harness.ledger.checks(harness.snapshot(), stage, hours), stage)}


def noted(verdicts: Iterable[CheckResult], stage: str) -> list[CheckResult]:
    """The failures among some verdicts of a stage, noted for the test that runs."""
    failures = [verdict for verdict in verdicts if not verdict.success]
    names = {verdict.check for verdict in failures}
    # What a stream accepts is looked up by it.
    assert {BUILT_IN[name].stage for name in names if name in BUILT_IN} <= {stage}
    _SEEN.update(names)
    return failures


def makes_fail(*checks: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Declares the checks that a test makes fail, and has the test fail if one of them does not."""

    def declared(test: Callable[P, None]) -> Callable[P, None]:
        @wraps(test)
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            _SEEN.clear()
            test(*args, **kwargs)
            assert set(checks) <= _SEEN, f"declared, and has not failed: {sorted(set(checks) - _SEEN)}"

        run.__dict__["checks"] = checks
        return run

    return declared


def declared_in(module: ModuleType) -> set[str]:
    """The checks that the tests of a module declare."""
    return {check for item in vars(module).values() for check in getattr(item, "checks", ())}
