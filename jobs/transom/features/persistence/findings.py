"""Persistent items as findings."""

from collections.abc import Iterator
from dataclasses import dataclass

from transom.core.durations import format_duration_long
from transom.core.intervals import HOUR
from transom.features.items.findings import ItemFindings, common
from transom.features.persistence.spec import Persistence
from transom.findings.source import FindingSource, Row
from transom.findings.text import as_decimal, rounded
from transom.spec.stream import Stream


@dataclass(frozen=True, kw_only=True)
class PersistentFindings(ItemFindings):
    """Texts for the persistent items of a block."""

    columns: tuple[str, ...] = (
        "window_end", "spell_id", "low", "high", "estimate", "state", "entered", "since", "slots", "records",
        "gap_mean_s", "gap_cv",
    )  # fmt: skip

    def seen(self, row: Row) -> str:
        """Return the text for the item's number of slots and of records."""
        about = as_decimal(rounded(row["estimate"], 1))
        return f"in {row['low']} to {row['high']} of {self.window}, about {about}; {row['records']} records"

    def evidence(self, row: Row) -> list[str]:
        """Return the item's count, the picture of its slots, and the times between contacts."""
        gaps = ""
        if row["gap_mean_s"] is not None:
            mean, deviation = rounded(row["gap_mean_s"], 1), rounded(100 * (row["gap_cv"] or 0.0), 1)
            gaps = (
                f"on average {as_decimal(mean)} s from the first contact of a slot to that of the next one, "
                f"with a deviation of {as_decimal(deviation)} %"
            )
        return [*super().evidence(row), row["slots"] or "", gaps]


def templates(stream: Stream) -> Iterator[PersistentFindings]:
    """Yield the texts of the blocks of a stream whose items are findings."""
    for name, block in stream.blocks(Persistence).items():
        if block.finding:
            window = f"{block.slots} slots of {format_duration_long(block.slot)}"
            yield PersistentFindings(
                **common(name, block, "there again and again"),
                gone=f"no more in enough of the {window}",
                # With slots of several hours, not every hour reports.
                reach=max(block.slot // HOUR - 1, 0),
                window=window,
            )


SOURCE = FindingSource("persistence", "persistent_items", "persistent_item", templates)
