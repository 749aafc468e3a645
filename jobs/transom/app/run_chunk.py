"""What a stage does with a chunk of an interval: the same, whichever job or command asks for it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from transom.app.definitions import definition, shared_state, stage_names
from transom.core.intervals import Interval
from transom.core.partitions import SOURCE_STAGE
from transom.engine.check_builders import waivers_of
from transom.engine.runner import Outcome, drop_removed_blocks, run_steps
from transom.features.ingest.stage import ingest
from transom.features.ingest.tables import Tables
from transom.ledger.ledger import Ledger
from transom.spec.stream import Stream
from transom.storage.store import Store


@dataclass
class Context:
    """What a stage is given of a run.

    Attributes:
        interval: of the run.
        chunk: the part of it that is at hand.
        seconds: how long each phase of the run has taken.
        recompute: whether the chunk's hours are computed and written even where they are fresh.
    """

    store: Store
    ledger: Ledger
    stream: Stream
    interval: Interval
    run_id: str
    chunk: Interval
    seconds: dict[str, float] = field(default_factory=dict)
    recompute: bool = False

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the time spent inside to the run's phases."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - began, 3)


def run_chunk(stage: str, context: Context) -> Outcome:
    """Bring a chunk of a stage up to date."""
    return _ingest(context) if stage == SOURCE_STAGE else _refresh(stage, context)


def _ingest(context: Context) -> Outcome:
    context.store.create(Tables.of(context.stream))
    with context.phase(SOURCE_STAGE):
        outcome = ingest(
            context.store, context.ledger, context.stream, context.chunk, context.run_id, context.interval,
            context.recompute,
        )  # fmt: skip
        # No run of its own takes away what a stage has left that the stream has no longer.
        gone = [name for name in stage_names(context.stream) if name not in context.stream.stages]
        if gone and context.ledger.snapshot(gone):
            for name in gone:
                drop_removed_blocks(
                    context.store, context.ledger, definition(context.stream, name), context.run_id
                )
    return outcome


def _refresh(stage: str, context: Context) -> Outcome:
    defined = definition(context.stream, stage)
    context.store.create(step.table for step in defined.steps if step.parts)
    with context.phase(stage):
        return run_steps(
            context.store,
            context.ledger,
            defined,
            context.chunk,
            context.stream.repair_window,
            context.run_id,
            waivers_of(context.stream),
            context.interval,
            context.stream.retention,
            shared_state(context.stream, stage),
            context.recompute,
        )
