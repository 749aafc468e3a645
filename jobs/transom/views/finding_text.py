"""Findings in plain words, as all pages show them: titles, times, and how exact they are.

The rows of the table `findings` stay as they are. A text is a function of a finding, the specification, and
the published hours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar, cast

from transom.charts.section import Section
from transom.core.durations import format_duration
from transom.core.intervals import MICROSECOND
from transom.core.terminal_tables import plain
from transom.findings.from_ledger import KINDS, Finding
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.feature import Feature, FindingMeaning
from transom.spec.stream import Stream

T = TypeVar("T")
EXACTNESS = {
    "exact": "the values are those of all events",
    "guaranteed": "the statement is certainly true; it has no number",
    "estimated": "the statement may be wrong",
}
"""The words for how exact a finding is, with their meanings."""
NO_COUNT = ("guaranteed", "estimated")
"""The words for a statement without a number."""
LEFT = {
    "guaranteed": "it is certain that the item no longer qualifies; it has no number",
    "estimated": "that the item no longer qualifies may be wrong",
}
"""Their meanings, of the finding of an item that has left."""
BOUNDS = "the number is certainly in this range"
"""The meaning of two bounds."""


@dataclass(frozen=True)
class FindingText:
    """The texts of the findings of a stream.

    Attributes:
        stream: the stream.
        snapshot: the ledger.
    """

    stream: Stream
    snapshot: LedgerSnapshot

    def title(self, finding: Finding) -> str:
        """Return the title without the name of the stream, which the page has."""
        return finding.title.removeprefix(f"{self.stream.name}: ")

    def end(self, finding: Finding) -> datetime | None:
        """Return the end of a finding, exclusive; of a frame that of what its last reading covers."""
        end, covered = finding.end_time, self._meaning(finding, lambda of: of.covered)
        return end if end is None or covered is None else end - MICROSECOND + covered

    def time(self, finding: Finding) -> str:
        """Return the time of a finding, without whether it continues; empty if it belongs to no hour."""
        start, end = finding.start_time, self.end(finding)
        if start is None or end is None:
            return ""
        window = self._meaning(finding, lambda of: of.window)
        if window is None:
            # The end of the last record is a microsecond after it.
            return f"{plain(start)} to {plain(end.replace(microsecond=0))}"
        length = format_duration(window)
        if start == end:
            return f"the {length.removeprefix('1 ')} up to {plain(end)}"
        left = "; not in the last of them" if self.has_left(finding) else ""
        return f"windows of {length} that end from {plain(start)} to {plain(end)}{left}"

    def continues(self, finding: Finding) -> str:
        """Return whether a finding continues: `ongoing` in the last published hour, or open; else empty."""
        end, last = self.end(finding), self.snapshot.hours(finding.stage).last
        if not finding.ongoing:
            return ""
        if finding.kind in KINDS or end is None or last is None or end > last:
            return "ongoing"
        growth = self._meaning(finding, lambda of: of.growth)
        if growth is None:
            return "open: it may go on"
        return f"open: records until {plain((end + growth).replace(microsecond=0))} may join it"

    def has_ended(self, finding: Finding) -> bool:
        """Return whether a finding is of the past; one from the ledger is true as long as it exists."""
        return finding.kind not in KINDS and finding.end_time is not None and not finding.ongoing

    def has_left(self, finding: Finding) -> bool:
        """Return whether a finding is of an item that no longer qualifies: its last window has no count."""
        window = self._meaning(finding, lambda of: of.window)
        return window is not None and finding.exactness in NO_COUNT

    def exactness(self, finding: Finding) -> str:
        """Return how exact a finding is: a word of `EXACTNESS`, or the bounds of a number and its unit."""
        low, is_range, high = finding.exactness.partition("..")
        return self.number(finding, low, high) if is_range else finding.exactness

    def number(self, finding: Finding, low: object, high: object) -> str:
        """Return the bounds of a finding's number with their unit."""
        of = self._meaning(finding, lambda of: of.unit) or "records"
        return f"{low if low == high else f'{low} to {high}'} {of}"

    def meaning(self, finding: Finding) -> str:
        """Return what `exactness` means."""
        words = LEFT if self.has_left(finding) else EXACTNESS
        return BOUNDS if ".." in finding.exactness else words.get(finding.exactness, "")

    def evidence(self, finding: Finding) -> list[str]:
        """Return the evidence without what is a chart, in the words of its feature."""
        lines = (line for line in finding.evidence if self._picture(finding, line) is None)
        return [self._evidence(finding, line) or line for line in lines]

    def picture(self, finding: Finding) -> Section | None:
        """Return the chart of the evidence; None if there is none."""
        pictures = (self._picture(finding, line) for line in finding.evidence)
        return next((of for of in pictures if of is not None), None)

    def _evidence(self, finding: Finding, line: str) -> str | None:
        return self._meaning(
            finding, lambda of: lambda stream, name: of.evidence(stream, name, line, finding.exactness)
        )

    def _picture(self, finding: Finding, line: str) -> Section | None:
        end = finding.end_time
        if end is None:
            return None
        return self._meaning(
            finding, lambda of: lambda stream, name: cast(Section | None, of.picture(stream, name, line, end))
        )

    def feature(self, finding: Finding) -> Feature[Stream] | None:
        """Return the feature of a finding; None if the stream file has no such block."""
        feature = next((of for of in self.stream.features if of.name == finding.stage), None)
        block = finding.block
        if feature is None or block is None or block not in self.stream.blocks(feature.block):
            return None
        return feature

    def _meaning(
        self, finding: Finding, function: Callable[[FindingMeaning[Stream]], Callable[[Stream, str], T]]
    ) -> T | None:
        """Return a result of a finding's feature for its block; None if the stream file has no such block."""
        feature, block = self.feature(finding), finding.block
        if feature is None or block is None:
            return None
        return function(feature.finding_meaning)(self.stream, block)
