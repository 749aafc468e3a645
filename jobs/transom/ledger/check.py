"""What a check says and what it saw: plain values, and how their numbers are written."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "incomplete", "warning"]


def format_exact(observed: float | None) -> str:
    """A number as a stream file takes it, in `waivers` say: it reads back as exactly this value."""
    if observed is None:
        return "nothing"
    value = float(observed)
    # Whole numbers without their .0, as long as the file's integers hold them.
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def format_short(observed: float | None) -> str:
    """A number as a person reads it: whole ones whole, others with four digits at least."""
    if observed is None or float(observed).is_integer():
        return format_exact(observed)
    return f"{observed:.4g}" if abs(observed) < 1000 else f"{observed:.1f}"


@dataclass(frozen=True)
class Check:
    """A bound on one metric.

    Attributes:
        name: in the language of the domain; what a person reads and may accept.
        metric: the column of the table of metrics.
        at_least, at_most: the bounds, inside; None leaves that side open.
        column: the column of the data that the check is about, where it is about one.
        advice: what helps, where name and figures do not tell.
        rule: what the metric counts, where the stream's file says it: another rule is another check.
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
        return self._bound() if self.advice is None else f"{self._bound()} ({self.advice})"

    def _bound(self) -> str:
        if self.at_least is not None and self.at_least == self.at_most:
            return format_exact(self.at_least)
        sides = [f"at least {format_exact(self.at_least)}"] if self.at_least is not None else []
        sides += [f"at most {format_exact(self.at_most)}"] if self.at_most is not None else []
        return " and ".join(sides)


@dataclass(frozen=True)
class MetricResult:
    """What one check saw in one row of the table of metrics."""

    check: Check
    row: int
    observed: float | None
    success: bool
