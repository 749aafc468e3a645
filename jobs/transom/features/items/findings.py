"""Findings of items: one for each spell of an item."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from transom.features.items.validate import ItemBlock
from transom.findings.source import ONGOING, EntityFindings, Row
from transom.findings.text import as_time


@dataclass(frozen=True, kw_only=True)
class ItemFindings(EntityFindings):
    """Texts for the items of a block.

    Attributes:
        gone: the text for an item that no longer qualifies.
        gone_exactness: the exactness of that text.
        window: the text for the records or slots that are counted.
        titled_ended: the title for a spell that has ended.
    """

    id: str = "spell_id"
    condition: str = "spell_id IS NOT NULL"
    new: str = "entered"
    start: str = "since"
    end: str = "window_end"
    times: tuple[str, ...] = ("since", "window_end")
    gone: str
    gone_exactness: str = "guaranteed"
    window: str
    titled_ended: str

    def title(self, row: Row) -> str:
        """Return the title without the stream's name, in the past tense if the spell has ended."""
        return self.fill(self.titled if row[ONGOING] else self.titled_ended, row)

    @abstractmethod
    def seen(self, row: Row) -> str:
        """Return the text for the count of an item that still qualifies."""

    def evidence(self, row: Row) -> list[str]:
        """Return the text for the item's count; an item that no longer qualifies has none."""
        return [f"{self.gone} up to {as_time(row['window_end'])}" if row["low"] is None else self.seen(row)]

    def exactness(self, row: Row) -> str:
        """Return `exact`, the bounds of the count, or `gone_exactness`."""
        low, high = row["low"], row["high"]
        if low is None:
            return self.gone_exactness
        return "exact" if low == high else f"{low}..{high}"


def common(name: str, block: ItemBlock, predicate: str) -> dict[str, Any]:
    """Return the fields of `ItemFindings` that follow from a block.

    Args:
        name: the name of the block.
        block: the block.
        predicate: the predicate of the default title, without its verb.
    """
    item = ", ".join(f"{{{column}}}" for column in block.item)
    return {
        "block": name,
        "severity": block.severity,
        "item": block.item,
        "titled": block.title or f"{name}: {item} is {predicate}, since {{since}}",
        "titled_ended": block.title or f"{name}: {item} was {predicate}, {{since}} to {{window_end}}",
    }
