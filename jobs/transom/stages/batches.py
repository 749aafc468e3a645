"""The batches of a pattern that are stored, an hour long or longer: the first and the last L records of each.

The batches that end in an hour depend on the events since their start alone; that they are put together from
batches of the level below which stand in the table already makes them cheap and changes nothing in them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import pyarrow as pa

from transom.algorithms.batches import trimmed
from transom.algorithms.exact import Int64s
from transom.intervals import HOUR, ranges
from transom.lake.parts import EPOCH
from transom.lake.stage import Computed, Part, Reads, Request, Share, Step
from transom.lake.tables import ARROW_TYPES, Table
from transom.lake.tally import Tally
from transom.stages.columns import HOUR_LENGTH, as_type, hour_of_end
from transom.stages.patterns import EVENT, RECORD, PatternBlock, of_batches, of_events, of_one_key, union
from transom.stages.records import Records
from transom.stages.slices import micros
from transom.stages.work import count_batches, with_sizes
from transom.stream import Stream

TABLE = "batches"


def step_of(stream: Stream, blocks: Mapping[str, PatternBlock]) -> Step:
    """The step of the table, of the patterns that have such batches."""
    long = {name: block for name, block in blocks.items() if block.stored}
    table = Table.load(TABLE).declare(
        key={name: kind for block in long.values() for name, kind in block.key.items()},
        carried={name: kind for block in long.values() for name, kind in block.carried_columns().items()},
    )
    parts = {
        name: Part(
            (Reads("ingest", "events", "events", back=block.reach_of_batches),),
            stream.batches_shape(name),
            ("hour", "level", "batch", *block.record_columns),
        )
        for name, block in long.items()
    }
    step = Step(table, parts, lambda request: batches_of(request, long), reuses=True)
    return with_sizes(step, stream, long)


@dataclass(frozen=True)
class Made:
    """Which batches are made, and of what: numbers of batches, by level.

    Attributes:
        made: those that are put together.
        stands: those that are taken from the table.
    """

    made: Mapping[int, set[int]] = field(default_factory=dict)
    stands: Mapping[int, set[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, block: PatternBlock, targets: Iterable[datetime], reusable: Collection[datetime]) -> "Made":
        """What is needed of the batches that end in some hours."""
        plan = cls({level: set() for level in block.stored}, {level: set() for level in block.stored})
        open_ = [
            (level, number)
            for stretch in ranges(targets)
            for level in block.stored
            for number in _ending_in(micros(stretch.start), micros(stretch.end), block.widening.length(level))
        ]
        for level, number in open_:
            plan.made[level].add(number)
        while open_:
            level, number = open_.pop()
            if level == block.lowest:
                continue
            for half in (2 * number, 2 * number + 1):
                if half in plan.made[level - 1]:
                    continue
                if hour_of(half, block.widening.length(level - 1)) in reusable:
                    plan.stands[level - 1].add(half)
                else:
                    plan.made[level - 1].add(half)
                    open_.append((level - 1, half))
        return plan

    def hours_of_events(self, block: PatternBlock) -> set[datetime]:
        """The hours whose events are needed."""
        length = block.widening.length(block.lowest)
        found: set[datetime] = set()
        for number in self.made[block.lowest]:
            first, last = number * length // HOUR_LENGTH, ((number + 1) * length - 1) // HOUR_LENGTH
            found.update(EPOCH + hour * HOUR for hour in range(first, last + 1))
        return found

    def hours_that_stand(self, block: PatternBlock) -> dict[int, set[datetime]]:
        """The hours of the table that hold what is taken from it, by level."""
        return {
            level: {hour_of(number, block.widening.length(level)) for number in numbers}
            for level, numbers in self.stands.items()
        }


def hour_of(number: int, length: int) -> datetime:
    """The hour in which a batch ends."""
    return EPOCH + ((number + 1) * length - 1) // HOUR_LENGTH * HOUR


def _ending_in(start: int, end: int, length: int) -> range:
    """The batches that end in `(start, end]`."""
    return range(start // length, end // length)


def batches_of(request: Request, blocks: Mapping[str, PatternBlock]) -> Computed:
    """The batches that end in every pattern's target hours."""
    due = request.rows.get(("events", "events"), {})
    shares = []
    for name, targets in request.targets.items():
        block = blocks[name]
        plan = Made.of(block, targets, request.reusable.get(name, ()))
        hours = plan.hours_of_events(block) & due.keys()
        rows = [of_events(request.pins.read("events", hours), block)]
        stands = plan.hours_that_stand(block)
        if any(stands.values()):
            held = request.pins.read(TABLE, set().union(*stands.values()))
            rows.append(of_batches(held, block, stands))
        counted = Batches(block, plan, np.array(sorted(map(micros, targets)), dtype=np.int64))
        shares.append(Share(name, of_one_key(union(rows), block), counted=counted))
    return Computed(shares)


@dataclass(frozen=True)
class Batches:
    """What a task makes of its partition's records.

    Attributes:
        hours: those whose batches are wanted, in microseconds, ordered.
    """

    block: PatternBlock
    plan: Made
    hours: Int64s

    def __call__(self, batches: Iterable[pa.RecordBatch], tally: Tally) -> Iterator[pa.RecordBatch]:
        """The batches of some keys, of which these are all records."""
        block = self.block
        records = Records.gathered(batches, block)
        if records is None:
            return
        below, cut = records.at(EVENT), np.zeros(int((records.level == EVENT).sum()), dtype=bool)
        for level in block.stored:
            length = block.widening.length(level)
            chosen = np.isin(records.time[below] // length, _numbers(self.plan.made[level]))
            below, cut = below[chosen], cut[chosen]
            left = trimmed(records.rows(below, cut), length, block.widening.most)
            below, cut = below[left.kept], left.cut[left.kept]
            count_batches(tally, left)
            yield from self._emitted(records, level, below, cut)
            stands = records.at(level)
            stands = stands[np.isin(records.time[stands] // length, _numbers(self.plan.stands[level]))]
            together = np.concatenate([below, stands])
            order = np.argsort(together, kind="stable")
            cut = np.concatenate([cut, records.cut[stands]])[order]
            below = together[order]

    def _emitted(
        self, records: Records, level: int, places: Int64s, cut: np.ndarray
    ) -> Iterator[pa.RecordBatch]:
        length = self.block.widening.length(level)
        start = records.time[places] // length * length
        hour = hour_of_end(start + length)
        wanted = np.isin(hour, self.hours)
        rows = records.table.take(pa.array(places[wanted]))
        columns = {
            "hour": hour[wanted],
            "level": np.full(int(wanted.sum()), level, dtype=np.int32),
            "batch": start[wanted],
            **{name: rows[name] for name in self.block.record_columns},
            "cut": cut[wanted],
        }
        kinds = kinds_of(self.block)
        schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in kinds.items()])
        arrays = [as_type(columns[name], ARROW_TYPES[kind]) for name, kind in kinds.items()]
        yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=65536)


def kinds_of(block: PatternBlock) -> dict[str, str]:
    """The columns of `batches` that a pattern fills, with their types."""
    return {
        "hour": "timestamp",
        "level": "int",
        "batch": "timestamp",
        **block.key,
        **RECORD,
        "takes": "bigint",
        "cut": "boolean",
        **block.carried_columns(),
    }


def _numbers(of: Collection[int]) -> Int64s:
    return np.array(sorted(of), dtype=np.int64)
