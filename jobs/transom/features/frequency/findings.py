"""Heavy items as findings."""

from collections.abc import Iterator
from dataclasses import dataclass

from transom.core.durations import format_duration_long
from transom.features.frequency.spec import Frequency
from transom.features.items.findings import ItemFindings, common
from transom.findings.source import FindingSource, Row
from transom.findings.text import as_decimal, rounded
from transom.spec.stream import Stream


@dataclass(frozen=True, kw_only=True)
class HeavyFindings(ItemFindings):
    """Texts for the heavy items of a block."""

    columns: tuple[str, ...] = (
        "window_end", "spell_id", "rank", "estimate", "low", "high", "window_records", "state", "entered",
        "since",
    )  # fmt: skip
    reach: int = 0

    def seen(self, row: Row) -> str:
        """Return the text for the item's number of records and its rank."""
        share = as_decimal(rounded(100.0 * row["estimate"] / max(row["window_records"], 1), 1))
        records = f"{row['estimate']} of {row['window_records']} {self.window}"
        return f"about {records}, {share} %; place {row['rank']}"


def templates(stream: Stream) -> Iterator[HeavyFindings]:
    """Yield the texts of the blocks of a stream whose items are findings."""
    for name, block in stream.blocks(Frequency).items():
        if block.finding:
            vanilla, last = block.variant == "vanilla", format_duration_long(block.window)
            window = "records since the start" if vanilla else f"records of the last {last}"
            yield HeavyFindings(
                **common(name, block, "among the most frequent"),
                gone=f"below {100 * block.min_share:g} % of the {window}",
                gone_exactness="guaranteed" if block.never_below else "estimated",
                window=window,
            )


SOURCE = FindingSource("frequency", "frequencies", "heavy_hitter", templates)
