"""Checks and their results as plain values, and the format of their numbers."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "incomplete", "warning"]


def format_exact(observed: float | None) -> str:
    """Return a number as `waivers` in a stream file take it: the text parses to exactly this value."""
    if observed is None:
        return "nothing"
    value = float(observed)
    # Whole numbers without .0, if YAML integers are exact.
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def format_short(observed: float | None) -> str:
    """Return a number for people: whole ones whole, others with at least four digits."""
    if observed is None or float(observed).is_integer():
        return format_exact(observed)
    return f"{observed:.4g}" if abs(observed) < 1000 else f"{observed:.1f}"


@dataclass(frozen=True)
class Check:
    """A bound on a metric.

    Attributes:
        name: in terms of the domain; people see it and waive it by this name.
        metric: the name of the metric.
        at_least, at_most: the bounds, inclusive; None if there is none.
        column: the column that the check is about; None if it is not about one.
        advice: what to do, if name and numbers do not tell.
        rule: the condition that the metric counts, of a check in the stream file. Another rule makes another
            check.
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
        """The bound in words, with the advice."""
        bounds = [f"at least {format_exact(self.at_least)}"] if self.at_least is not None else []
        bounds += [f"at most {format_exact(self.at_most)}"] if self.at_most is not None else []
        if self.at_least is not None and self.at_least == self.at_most:
            bounds = [format_exact(self.at_least)]
        return " and ".join(bounds) + ("" if self.advice is None else f" ({self.advice})")


@dataclass(frozen=True)
class MetricResult:
    """The result of a check for one row of the metrics."""

    check: Check
    row: int
    observed: float | None
    success: bool
