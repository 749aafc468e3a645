"""Checks and their results as plain values, and the format of their numbers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "incomplete", "warning"]
_BOUND = re.compile(r"(at least|at most) (\S+)")


def format_exact(observed: float | None) -> str:
    """Return a number as text that parses to exactly this value, for `waivers` in a stream file."""
    if observed is None:
        return "nothing"
    value = float(observed)
    # Whole numbers without .0, if YAML integers are exact.
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def format_short(observed: float | None) -> str:
    """Return a number as short text: integers in full, other numbers with at least four digits."""
    if observed is None or float(observed).is_integer():
        return format_exact(observed)
    return f"{observed:.4g}" if abs(observed) < 1000 else f"{observed:.1f}"


@dataclass(frozen=True)
class Check:
    """A bound on a metric.

    Attributes:
        name: the name, in terms of the domain; waivers and messages use it.
        metric: the name of the metric.
        severity: the effect of a failure.
        at_least: the lower bound, inclusive; None if there is none.
        at_most: the upper bound, inclusive; None if there is none.
        column: the column that the check is about; None if it is about none.
        advice: what to do, if name and values do not show it.
        rule: the condition that the metric counts, for a check of the stream file. A change of the condition
            changes the check.
    """

    name: str
    metric: str
    severity: Severity = "error"
    at_least: float | None = None
    at_most: float | None = None
    column: str | None = None
    advice: str | None = None
    rule: str | None = None

    @property
    def expected(self) -> str:
        """The bounds as text, with the advice."""
        bounds = [f"at least {format_exact(self.at_least)}"] if self.at_least is not None else []
        bounds += [f"at most {format_exact(self.at_most)}"] if self.at_most is not None else []
        if self.at_least is not None and self.at_least == self.at_most:
            bounds = [format_exact(self.at_least)]
        return " and ".join(bounds) + ("" if self.advice is None else f" ({self.advice})")

    def accepts(self, observed: float) -> bool:
        """Return whether a value is within the bounds; NaN is, as for Great Expectations."""
        low, high = self.at_least, self.at_most
        return not (low is not None and observed < low) and not (high is not None and observed > high)


def bounds_of(expected: str) -> tuple[float | None, float | None]:
    """Return the lower and the upper bound of `Check.expected`; None where there is none."""
    text = expected.partition(" (")[0]
    found = dict(_BOUND.findall(text))
    try:
        if not found:
            return float(text), float(text)
        low, high = (float(found[name]) if name in found else None for name in ("at least", "at most"))
    except ValueError:
        # The text of another version.
        return None, None
    return low, high


@dataclass(frozen=True)
class MetricResult:
    """The result of a check for one row of the table of metrics.

    Attributes:
        check: the check.
        row: the number of the row.
        observed: the value of the metric.
        success: whether the check passed.
    """

    check: Check
    row: int
    observed: float | None
    success: bool


def predict_results(checks: Sequence[Check], metrics: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
    """Return the results that Great Expectations will have, for a plan of what to publish.

    To import it takes longer than all else that a run without work does. It evaluates what is published.

    Args:
        checks: the checks.
        metrics: the metrics of each row, by name; a check applies to the rows with its metric.
    """
    return [
        MetricResult(check, number, float(value), check.accepts(float(value)))
        for check in checks
        for number, row in enumerate(metrics)
        if (value := row.get(check.metric)) is not None
    ]
