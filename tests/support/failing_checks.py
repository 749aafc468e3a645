"""The checks that a test makes fail: declared by the test, and compared with the failed ones."""

from collections.abc import Callable, Iterable
from functools import wraps
from types import ModuleType
from typing import ParamSpec

from tests.support.stream_harness import StreamHarness
from transom.core.partitions import CheckResult
from transom.features.registry import BUILT_IN

P = ParamSpec("P")

_SEEN: set[str] = set()
"""The checks that have failed in the running test."""


def failed(harness: StreamHarness, stage: str) -> dict[str, CheckResult]:
    """Return the failed checks of a stage by name."""
    hours = {node.hour for node in harness.snapshot()}
    return {v.check: v for v in noted(harness.ledger.checks(harness.snapshot(), stage, hours), stage)}


def noted(verdicts: Iterable[CheckResult], stage: str) -> list[CheckResult]:
    """Return the failures among a stage's verdicts, and record them for the running test."""
    failures = [verdict for verdict in verdicts if not verdict.success]
    names = {verdict.check for verdict in failures}
    # The waivers of a stream are looked up by it.
    assert {BUILT_IN[name].stage for name in names if name in BUILT_IN} <= {stage}
    _SEEN.update(names)
    return failures


def makes_fail(*checks: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Declare the checks that a test makes fail. The test fails if one of them does not."""

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
    """Return the checks that the tests of a module declare."""
    return {check for item in vars(module).values() for check in getattr(item, "checks", ())}
