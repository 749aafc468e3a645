"""What each stage does with a chunk of an interval: the same, whichever job or command asks for it."""

from collections.abc import Callable

from transom.app.run_stage import Context
from transom.engine.retention import Series
from transom.engine.runner import Outcome, forget, refresh
from transom.features import sketch_stage as sketch
from transom.features.aggregates import stage as aggregate
from transom.features.check_builders import accepted_of
from transom.features.fills import stage as fill
from transom.features.frames import stage as frame
from transom.features.ingest.stage import ingest
from transom.features.ingest.tables import Tables
from transom.features.patterns import stage as widen
from transom.ledger.stage import Stage
from transom.stream import Stream

Work = Callable[[Context], Outcome]
LATER = {of.NAME: of.outline for of in (widen, aggregate, frame, fill, sketch)}
"""Every stage behind the first one, as it is told without a session."""


def _ingest(context: Context) -> Outcome:
    context.store.create(Tables.of(context.stream))
    with context.phase("ingest"):
        outcome = ingest(
            context.store, context.ledger, context.stream, context.chunk, context.run_id, context.interval,
            context.recompute,
        )  # fmt: skip
        # No run of its own takes away what a stage has left that the stream has no longer.
        gone = [name for name in LATER if name not in context.stream.stages]
        if gone and context.ledger.book(gone):
            for name in gone:
                forget(context.store, context.ledger, LATER[name](context.stream), context.run_id)
    return outcome


def _aggregate(context: Context) -> Outcome:
    return _refreshed(context, aggregate.stage(context.stream))


def _widen(context: Context) -> Outcome:
    return _refreshed(context, widen.stage(context.stream))


def _frame(context: Context) -> Outcome:
    return _refreshed(context, frame.stage(context.stream))


def _fill(context: Context) -> Outcome:
    return _refreshed(context, fill.stage(context.stream))


def _sketch(context: Context) -> Outcome:
    return _refreshed(context, sketch.stage(context.stream))


def _refreshed(context: Context, declared: Stage) -> Outcome:
    context.store.create(step.table for step in declared.steps if step.parts)
    with context.phase(declared.name):
        return refresh(
            context.store,
            context.ledger,
            declared,
            context.chunk,
            context.stream.heal,
            context.run_id,
            accepted_of(context.stream),
            context.interval,
            context.stream.retention,
            shared_state(context.stream, declared.name),
            context.recompute,
        )


def shared_state(stream: Stream, stage: str) -> frozenset[Series]:
    """Block and table of all of a stage that other stages read."""
    steps = [step for name in LATER if name != stage for step in LATER[name](stream).steps]
    parts = [part for step in steps for part in step.parts.values()]
    return frozenset((of.block, of.table) for part in parts for of in part.reads if of.stage == stage)


WORKS: dict[str, Work] = {
    "ingest": _ingest,
    "widen": _widen,
    "aggregate": _aggregate,
    "frame": _frame,
    "fill": _fill,
    "sketch": _sketch,
}
"""Every stage, in the order in which they run."""
