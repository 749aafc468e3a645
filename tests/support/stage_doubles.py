"""Stages with the steps, tables and reads of their real definition, and one generic computation.

The computed rows of an hour are a hash of all that the hour may read. So an hour has unexpected rows if it is
not recomputed when it should be, reads too much or too little, or comes from a killed run.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from tests.support.memory_lake import Row, Rows
from transom.app.definitions import definition
from transom.core.partitions import EXTERNAL_STAGE
from transom.ledger.check import Check
from transom.ledger.input_hashes import partitions_read
from transom.ledger.stage import BlockTask, InputRange, Stage, StepRequest, StepResult, TableStep
from transom.stream import Stream

VALUES = 100
"""Exclusive upper bound of the computed values."""
EMPTY = 6
"""Of hours with input, one in this many has no rows."""


@dataclass
class Double:
    """Replaces a real stage of a stream.

    Attributes:
        at_most: a larger value is an error: one in twenty, or none.
        at_least: a smaller value makes an hour incomplete: one in ten, or none.
        computed: table, block and hour of everything computed, in order.
    """

    name: str
    stream: Stream
    at_most: int = VALUES
    at_least: int = 0
    computed: list[tuple[str, str, datetime]] = field(default_factory=list)

    @cached_property
    def stage(self) -> Stage:
        defined = definition(self.stream, self.name)
        return replace(defined, steps=tuple(self._step(defined, step) for step in defined.steps))

    def _step(self, definition: Stage, step: TableStep) -> TableStep:
        checks = (
            Check("small", "value", "incomplete", at_least=self.at_least),
            Check("large", "value", "error", at_most=self.at_most),
        )

        def compute(request: StepRequest) -> StepResult:
            return StepResult([self._share(definition, step, request, block) for block in request.targets])

        return TableStep(step.table, step.outputs, compute, checks)

    def _share(self, definition: Stage, step: TableStep, request: StepRequest, block: str) -> BlockTask:
        part, targets, others = step.outputs[block], request.targets[block], step.external_inputs(block)
        assert list(targets) == sorted(set(targets))
        sources = {reads: _rows_read(definition, step, request, reads, targets) for reads in part.reads}
        frame = Rows()
        for hour in targets:
            self.computed.append((step.table.name, block, hour))
            read = [
                (reads.table, of, sources[reads][of])
                for reads in part.reads
                for of in _among(reads, hour, sources[reads])
            ]
            # Incomplete hours of several tables are reported together: only a step that reads one depends on
            # them.
            lacking = _among(others[0], hour, request.incomplete[block]) if len(others) == 1 else []
            row = _row(
                hour, (definition.version, block, part.fingerprint_of(hour), hour, read, lacking), bool(read)
            )
            frame += row
            for reads in part.reads:
                if reads.table == step.table.name:
                    sources[reads] |= {hour: row} if row else {}
        return BlockTask(block, frame)


def _row(hour: datetime, text: object, read: bool) -> list[Row]:
    number = int.from_bytes(hashlib.sha256(repr(text).encode()).digest()[:8])
    if not read or number % EMPTY == 0:
        return []
    return [{"hour": hour, "value": number // EMPTY % VALUES, "of": f"{number:x}"}]


def _among(reads: InputRange, hour: datetime, hours: Collection[datetime]) -> list[datetime]:
    first, last = reads.span(hour)
    return sorted(of for of in hours if first <= of <= last)


def _rows_read(
    definition: Stage, step: TableStep, request: StepRequest, reads: InputRange, targets: Sequence[datetime]
) -> dict[datetime, list[Row]]:
    """Return the rows that some hours read of a table, by hour."""
    hours = {node.hour for hour in targets for node in partitions_read(reads, hour)}
    if reads.stage == EXTERNAL_STAGE:
        filler = next(filler for filler in definition.fillers if filler.series[1] == reads.block)
        if filler.table is None:
            # Hours of another stream that are not required are not read either.
            hours &= request.rows[reads.block, reads.table].keys()
        rows = request.pins.read_filler(filler, hours)
        if filler.table is not None and filler.time is None:
            # Rows of all time: every target reads them all.
            return {hour: list(rows) for hour in hours} if rows else {}
    elif reads.table == step.table.name:
        rows = request.pins.read(reads.table, hours - set(targets))
    else:
        # An hour that is not required is not read, even if files of other hours have rows there.
        rows = request.pins.read(reads.table, hours & request.rows[reads.block, reads.table].keys())
    result: dict[datetime, list[Row]] = {}
    for row in rows:
        if row.get("block", reads.block) == reads.block:
            result.setdefault(row["hour"], []).append({k: v for k, v in row.items() if k != "block"})
    # Rows have no order: the same rows in another order have the same digest.
    return {hour: sorted(some, key=repr) for hour, some in result.items()}
