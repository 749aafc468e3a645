"""What a feature says of its findings: which rows they are made of, and how each is put in words."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from transom.core.partitions import PartitionState
from transom.findings.from_ledger import Finding, Severity
from transom.findings.text import filled, key_text, one_line

if TYPE_CHECKING:
    from transom.spec.stream import Stream

VERSION = 1
"""Of the words. Raise it with every change of the code that puts the same rows in other words."""
HOUR, FIRST_HOUR, ONGOING, IDENTITY = "__hour", "__first_hour", "__ongoing", "__identity"
"""Columns of every summary: as in `Finding`, and a text that tells the finding from others of its block. No
column of a stream begins with two underscores."""
MOMENT = pa.timestamp("us", "UTC")
Row = Mapping[str, Any]
"""A row of a summary."""


@dataclass(frozen=True, kw_only=True)
class FindingTemplate(ABC):
    """How the findings of a block are made of its rows.

    All that the words depend on beside the row is in attributes: by a hash of these a change of them shows.

    Attributes:
        block: the name of the block.
        severity: how bad they are.
        titled: the title, with columns in braces.
        columns: the columns to read beside `hour`, key and item.
        condition: the rows to read, as an SQL condition.
        times: the columns that a title shows as times.
        key: the columns of the key.
        item: the columns of what it is about beside the key.
        start: the column of a summary with the start of the finding.
        end: the column with its end.
        ends_inside: whether that is the time of the last record, and not after it.
    """

    block: str
    severity: Severity
    titled: str
    columns: tuple[str, ...]
    condition: str = "TRUE"
    times: tuple[str, ...]
    key: tuple[str, ...] = ()
    item: tuple[str, ...] = ()
    start: str = "start_time"
    end: str = "end_time"
    ends_inside: bool = False

    @abstractmethod
    def summarize(
        self, rows: pa.Table, entries: Mapping[datetime, PartitionState], last: datetime
    ) -> pa.Table:
        """Return a row for each finding, with all that its words need and nothing more.

        Args:
            rows: the published rows of the block.
            entries: what the ledger says of the hours of the block's table.
            last: the last hour of these that is published.
        """

    def title(self, row: Row) -> str:
        """Return what is the matter, without the stream's name."""
        return filled(self.titled, row, self.times)

    @abstractmethod
    def evidence(self, row: Row) -> list[str]:
        """Return what was seen; empty texts are left out."""

    def exactness(self, row: Row) -> str:
        """Return how exact the figures are, as in `Finding`."""
        return "exact"


@dataclass(frozen=True)
class FindingSource:
    """The findings of one kind.

    Attributes:
        stage: the stage whose rows they are made of.
        table: the table of these rows.
        kind: what the findings are called.
        templates: how each block of a stream that has findings makes them; a block may have several.
    """

    stage: str
    table: str
    kind: str
    templates: "Callable[[Stream], Iterable[FindingTemplate]]"

    @property
    def condition(self) -> str:
        """An SQL condition on findings that they are of this source."""
        return f"stage = '{self.stage}' AND kind = '{self.kind}'"

    def finding(self, stream: str, template: FindingTemplate, row: Row, id: str, source_hash: str) -> Finding:
        """Return the finding of a row of a summary."""
        return Finding(
            stage=self.stage,
            hour=row[HOUR],
            finding_id=id,
            kind=self.kind,
            block=template.block,
            severity=template.severity,
            title=one_line(f"{stream}: {template.title(row)}"),
            start_time=row[template.start],
            end_time=row[template.end] + timedelta(microseconds=1)
            if template.ends_inside
            else row[template.end],
            ongoing=row[ONGOING],
            evidence=tuple(filter(None, template.evidence(row))),
            key=key_text(template.key, row),
            item=key_text(template.item, row),
            exactness=template.exactness(row),
            source_hash=source_hash,
            first_hour=row[FIRST_HOUR],
        )
