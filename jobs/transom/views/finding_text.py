"""Findings in plain words, as all pages show them: titles, times, and how exact they are.

The rows of the table `findings` stay as they are. A text is a function of a finding, the specification, and
the published hours.
"""

from dataclasses import dataclass
from datetime import datetime

from transom.core.durations import format_duration
from transom.core.intervals import MICROSECOND
from transom.core.terminal_tables import plain
from transom.features.frames.input_columns import every
from transom.features.frames.spec import Frame
from transom.features.frequency.spec import Frequency
from transom.features.patterns.spec import Pattern
from transom.features.persistence.spec import Persistence
from transom.features.persistence.view import slots_text
from transom.findings.from_ledger import KINDS, Finding
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream

EXACTNESS = {
    "exact": "the values are those of all events",
    "guaranteed": "the statement is certainly true; it has no number",
    "estimated": "the statement may be wrong",
}
"""The words for how exact a finding is, with their meanings."""
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
        block, end = self._block(finding), finding.end_time
        # The last reading of a liberal extent is the one after the frame.
        if end is None or not isinstance(block, Frame) or block.extent == "liberal":
            return end
        covered = every(self.stream, finding.block or "")
        return end if covered is None else end - MICROSECOND + covered

    def time(self, finding: Finding) -> str:
        """Return the time of a finding, without whether it continues; empty if it belongs to no hour."""
        start, end = finding.start_time, self.end(finding)
        if start is None or end is None:
            return ""
        block = self._block(finding)
        if not isinstance(block, Persistence | Frequency):
            # The end of the last record is a microsecond after it.
            return f"{plain(start)} to {plain(end.replace(microsecond=0))}"
        # The times of an item are the ends of windows.
        length = format_duration(block.window)
        if start == end:
            return f"the {length.removeprefix('1 ')} up to {plain(end)}"
        return f"windows of {length} that end from {plain(start)} to {plain(end)}"

    def continues(self, finding: Finding) -> str:
        """Return whether a finding continues: `ongoing` in the last published hour, or open; else empty.

        A pattern is open after its last record: a later match may join the episode if it begins at most
        `merge_gap` after it, and such a match takes `within` at most.
        """
        end, last = self.end(finding), self.snapshot.hours(finding.stage).last
        if not finding.ongoing:
            return ""
        if finding.kind in KINDS or end is None or last is None or end > last:
            return "ongoing"
        block = self._block(finding)
        if not isinstance(block, Pattern):
            return "open: it may go on"
        latest = end + block.merge_gap + block.within
        return f"open: a match that ends by {plain(latest.replace(microsecond=0))} may join it"

    def exactness(self, finding: Finding) -> str:
        """Return how exact a finding is: a word of `EXACTNESS`, or the bounds of a number and its unit."""
        low, is_range, high = finding.exactness.partition("..")
        if not is_range:
            return finding.exactness
        block = self._block(finding)
        unit = f" of {slots_text(block.slots, block.slot)}" if isinstance(block, Persistence) else ""
        return f"{low} to {high}{unit or ' records'}"

    def meaning(self, finding: Finding) -> str:
        """Return what `exactness` means."""
        return BOUNDS if ".." in finding.exactness else EXACTNESS.get(finding.exactness, "")

    def evidence(self, finding: Finding) -> list[str]:
        """Return the evidence without the slots of a persistent item, which are a chart."""
        slots = self.slots(finding)
        return [text for text in finding.evidence if text != slots]

    def slots(self, finding: Finding) -> str:
        """Return a character for each slot of the last window of a persistent item; empty if not known."""
        block = self._block(finding)
        if not isinstance(block, Persistence):
            return ""
        return next((text for text in finding.evidence if len(text) == block.slots and is_slots(text)), "")

    def _block(self, finding: Finding) -> object:
        """Return the specification of a finding's block; None if it is about none."""
        features = (of for of in self.stream.features if of.name == finding.stage)
        return next((self.stream.blocks(of.block).get(finding.block or "") for of in features), None)


def is_slots(text: str) -> bool:
    """Return whether a text is that of slots, as in `persistent_items`."""
    return {*text} <= {*"01?"}
