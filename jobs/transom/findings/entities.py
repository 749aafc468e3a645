"""Findings of things that last: each is made of the last row that its table has of the thing. No Spark.

The table has a row of a thing in every hour in which it has changed: `partial` as long as it may go on,
`final`, or `joined` when it becomes part of another thing, which makes no finding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.arrays.arrow import as_type, encode_keys, int64s
from transom.core.intervals import HOUR_LENGTH, micros
from transom.core.partitions import PartitionState
from transom.findings.source import FIRST_HOUR, HOUR, IDENTITY, MOMENT, ONGOING, FindingTemplate

_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True, kw_only=True)
class EntityFindings(FindingTemplate):
    """The findings of a block whose things last.

    Attributes:
        id: the column with the id of the thing.
        new: the column with how much of it is of the row's hour. Without any the hour only ends it.
        reach: the hours without a row after which nobody knows any more whether it goes on.
    """

    id: str
    new: str
    reach: int

    def summarize(
        self, rows: pa.Table, entries: Mapping[datetime, PartitionState], last: datetime
    ) -> pa.Table:
        """Return the last row of each thing, with its first hour and the last one that is new in it."""
        hours = int64s(rows["hour"])
        things, _ = encode_keys(rows, [self.id])
        order = np.lexsort((hours, things))
        hours = hours[order]
        starts = np.flatnonzero(np.diff(things[order], prepend=-1))
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


def plain_title(block: str, key: Sequence[str]) -> str:
    """Return a title for things of a key that are from `start_time` to `last_time`."""
    of = f" of {', '.join(f'{{{column}}}' for column in key)}" if key else ""
    return f"{block}{of}, {{start_time}} to {{last_time}}"
