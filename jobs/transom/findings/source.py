"""The interface of a feature's findings: the rows that they are computed from, and their text."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.arrays.arrow import as_type, encode_keys, int64s
from transom.core.intervals import HOUR_LENGTH, micros
from transom.core.partitions import PartitionState
from transom.findings.from_ledger import Finding, Severity
from transom.findings.text import filled, key_text, one_line
from transom.spec.stream import Stream

VERSION = 5
"""The version of the texts. Raise it with every change of the code that changes the text of the same rows."""
HOUR, FIRST_HOUR, ONGOING, IDENTITY = "__hour", "__first_hour", "__ongoing", "__identity"
"""Columns of every summary: attributes of `Finding`, and the finding's identity in its block. No column of a
stream begins with two underscores."""
MOMENT = pa.timestamp("us", "UTC")
_NEVER = np.iinfo(np.int64).min
Row = Mapping[str, Any]
"""A row of a summary."""
States = Mapping[datetime, PartitionState]


@dataclass(frozen=True, kw_only=True)
class FindingTemplate(ABC):
    """The findings of a block, and their text.

    The text depends only on the row and the attributes, so a hash of both shows a change.

    Attributes:
        block: the name of the block.
        severity: the severity of its findings.
        titled: the title, with columns in braces.
        columns: the columns to read in addition to `hour`, key and item.
        condition: the rows to read, as an SQL condition.
        times: the columns that the title shows as times.
        key: the columns of the key.
        item: the columns of the item.
        start: the column of a summary with the start of the finding.
        end: the column of a summary with the end of the finding.
        ends_inside: whether `end` is inclusive, as it is the time of the last record.
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

    @property
    @abstractmethod
    def grouped(self) -> tuple[str, ...]:
        """The columns in which all rows of a finding have the same values."""

    @abstractmethod
    def summarize(self, rows: pa.Table, entries: States, last: datetime) -> pa.Table:
        """Return a row for each finding, with only the values that its text needs.

        Args:
            rows: published rows of the block: all, or those with some values of `grouped`.
            entries: the states of the hours of the block's table.
            last: the last published hour of the block's table.
        """

    def title(self, row: Row) -> str:
        """Return the title without the stream's name."""
        return self.fill(self.titled, row)

    def fill(self, title: str, row: Row) -> str:
        """Return a title in which values of a row replace the columns in braces."""
        return filled(title, row, self.times, (*self.key, *self.item))

    @abstractmethod
    def evidence(self, row: Row) -> list[str]:
        """Return the lines of evidence; empty ones are dropped."""

    def exactness(self, row: Row) -> str:
        """Return how exact the values are, as in `Finding`."""
        return "exact"


@dataclass(frozen=True, kw_only=True)
class EntityFindings(FindingTemplate):
    """The findings of a block whose entities can last several hours; each is from the entity's last row.

    The table has a row of an entity for every hour in which it changed. Its state is `partial` while it may
    continue, then `final`, or `joined` if it becomes part of another entity. A joined one has no finding.

    Attributes:
        id: the column with the entity's id.
        new: the column that is above 0 in hours that count as reporting it, such as its new records.
        reach: the maximum number of hours without a row after which it still counts as ongoing.
    """

    id: str
    new: str
    reach: int

    @property
    def grouped(self) -> tuple[str, ...]:
        """The id."""
        return (self.id,)

    def summarize(self, rows: pa.Table, entries: States, last: datetime) -> pa.Table:
        """Return the last row of each entity, with the first and the last hour that reported it."""
        hours = int64s(rows["hour"])
        entities, _ = encode_keys(rows, [self.id])
        order = np.lexsort((hours, entities))
        hours = hours[order]
        starts = np.flatnonzero(np.diff(entities[order], prepend=-1))
        ends = np.append(starts, len(order))[1:] - 1
        news = np.maximum.reduceat(np.where(int64s(rows[self.new])[order] > 0, hours, _NEVER), starts)
        rows = rows.take(order[ends])
        within_reach = pa.array(hours[ends] >= micros(last) - self.reach * HOUR_LENGTH)
        summary = {
            IDENTITY: rows[self.id],
            HOUR: as_type(np.where(news == _NEVER, hours[ends], news), MOMENT),
            FIRST_HOUR: as_type(hours[starts], MOMENT),
            ONGOING: pc.and_(pc.equal(rows["state"], "partial"), within_reach),
            **{name: rows[name] for name in rows.column_names if name not in ("hour", "state", self.new)},
        }
        return pa.table(summary).filter(pc.not_equal(rows["state"], "joined"))


def plain_title(block: str, key: Sequence[str], end: str = "last_time") -> str:
    """Return a title for entities of a key, from `start_time` to a column with the end."""
    of = f" of {', '.join(f'{{{column}}}' for column in key)}" if key else ""
    return f"{block}{of}, {{start_time}} to {{{end}}}"


@dataclass(frozen=True)
class FindingSource:
    """The findings of one kind.

    Attributes:
        stage: the stage of their rows.
        table: the table of their rows.
        kind: the kind of the findings.
        templates: returns the templates of a stream; a block has one, several or none.
    """

    stage: str
    table: str
    kind: str
    templates: Callable[[Stream], Iterable[FindingTemplate]]

    @property
    def condition(self) -> str:
        """The SQL condition of this source's findings."""
        return f"stage = '{self.stage}' AND kind = '{self.kind}'"

    def finding(self, stream: str, template: FindingTemplate, row: Row, id: str, source_hash: str) -> Finding:
        """Return the finding of a row of a summary."""
        end = row[template.end] + timedelta(microseconds=1) if template.ends_inside else row[template.end]
        return Finding(
            stage=self.stage,
            hour=row[HOUR],
            finding_id=id,
            kind=self.kind,
            block=template.block,
            severity=template.severity,
            title=one_line(f"{stream}: {template.title(row)}"),
            start_time=row[template.start],
            end_time=end,
            ongoing=row[ONGOING],
            evidence=tuple(filter(None, template.evidence(row))),
            key=key_text(template.key, row),
            item=key_text(template.item, row),
            exactness=template.exactness(row),
            source_hash=source_hash,
            first_hour=row[FIRST_HOUR],
        )
