"""Several stages in one application, each behind the gate of the one that it reads: as the DAG runs them.

The start of an application is most of what a small hour costs; in a session that is warm a stage takes
seconds. What is published does not depend on it: each stage does over the interval what it does alone.
"""

import logging
import uuid
from collections.abc import Callable, Collection, Sequence
from functools import partial

from pyspark.sql import SparkSession

from transom.app.freshness import stale_hours
from transom.app.run_stage import root_of, run_stage
from transom.app.verify import DamagedInputsError, explain_failure, mark_failure
from transom.core.intervals import Interval
from transom.core.partitions import SOURCE_STAGE
from transom.engine.gate import GateResult, evaluate_gate
from transom.engine.verification import Verification
from transom.ledger.ledger import Ledger
from transom.ledger.waivers import entries_of
from transom.spec.errors import did_you_mean
from transom.spec.stream import Stream
from transom.storage.tables import one_line_message

LOG = logging.getLogger(__name__)
ERROR = 500
"""Characters of an error that are quoted: Spark adds the frames of its own code."""


def select_stages(stream: Stream, asked: Collection[str]) -> tuple[str, ...]:
    """The stages that are asked for, in the order in which they run.

    Raises:
        ValueError: none, or one that the stream does not have.
    """
    for name in asked:
        if name not in stream.stages:
            rule = f"must be stages of {stream.name}, with commas between them"
            raise ValueError(f"stages: {rule}; got {name!r}{did_you_mean(name, stream.stages)}")
    return tuple(stage for stage in stream.stages if stage in asked)


def run_stages(
    spark: SparkSession,
    stream: Stream,
    interval: Interval,
    *,
    lake: str,
    command: str,
    stages: Sequence[str] | None = None,
    run_id: str | None = None,
    trigger: str = "by hand",
    began: float | None = None,
    recompute: bool = False,
    past_gates: bool = False,
) -> list[GateResult]:
    """Run stages over an interval, one after the other, judge each by its gate, and log what that says.

    Each stage is a run of its own in the ledger; where there are several, its name is `<run_id> <stage>`.

    Args:
        command: what runs them again, with `{from}` and `{to}`; quoted with each failure.
        stages: in the order in which they run; None are all that the stream has.
        began: when the first began on the monotonic clock, where that was before its session.
        recompute: whether the interval's hours are computed and written even where they are fresh.
        past_gates: whether a stage runs although the gate before it does not pass. It computes the hours that
            need nothing of what is withheld.

    Returns:
        What the gate of each stage that has run says. Where one does not pass, no stage has run that reads
        what it publishes, unless `past_gates` says so.

    Raises:
        Damaged: a stage cannot go on, as a table is damaged; all stages that do not need it have run.
    """
    root = root_of(lake, stream)
    stages = stream.stages if stages is None else stages
    if len(stages) > 1:
        run_id = run_id or f"run-{uuid.uuid4().hex[:12]}"
    ledger = Ledger(root)
    judged: list[GateResult] = []
    # Of each stage whose gate does not pass, and of those behind it, which gate that is.
    closed: dict[str, str] = {}
    failed: list[str] = []
    for stage in stages:
        after = stream.upstream_stage(stage)
        if after in closed:
            closed[stage] = closed[after]
            continue
        own = run_id if len(stages) == 1 else f"{run_id} {stage}"
        # Only the first has waited for the session.
        before = began if not judged else None
        run = partial(
            run_stage, spark, stage, stream, interval,
            lake=lake, ledger=ledger, run_id=own, trigger=trigger, began=before, recompute=recompute,
        )  # fmt: skip
        gate = partial(_evaluate_gate, ledger, stage, stream, interval, command)
        try:
            judged.append(_past_damage(run, gate, stage, stream, root))
        except DamagedInputsError as error:
            failed.append(str(error))
            closed[stage] = stage
            continue
        except Exception as error:
            error.add_note(f"in stage {stage} of {stream.name}, {interval}")
            raise
        last = judged[-1]
        for warning in [*last.failures, *last.warnings]:
            LOG.warning(warning)
        for line in [*last.accepted, last.summary]:
            LOG.info(line)
        if not judged[-1].passed and not past_gates:
            closed[stage] = stage
    for closing in dict.fromkeys(closed.values()):
        left = [stage for stage, of in closed.items() if of == closing != stage]
        if left:
            LOG.warning(f"not run, as the gate of {closing} does not pass: {', '.join(left)}")
    if failed:
        raise DamagedInputsError("\n".join(failed))
    return judged


def _evaluate_gate(
    ledger: Ledger, stage: str, stream: Stream, interval: Interval, command: str
) -> GateResult:
    """What the gate of a stage says."""
    stale = stale_hours(stream, ledger, stage, interval)
    accepted = entries_of(stream.waivers)
    outlets = None if stage == SOURCE_STAGE else stream.feature(stage).outlets
    return evaluate_gate(
        ledger, stage, stream.name, interval, command, stream.repair_window, accepted, stale, stream.built_in,
        outlets,
    )  # fmt: skip


def _past_damage(
    run: Callable[[], object],
    gate: Callable[[], GateResult],
    stage: str,
    stream: Stream,
    root: str,
) -> GateResult:
    """Runs a stage and judges it; where it meets files that cannot be read, these hours are marked and it
    runs again, with all that does not need them.

    Raises:
        Damaged: it meets damage again, or a table that cannot be opened.
    """
    for again in (False, True):
        try:
            run()
            return gate()
        except Exception as error:
            found = explain_failure(stream, root, stage, error)
            if found is None:
                raise
            lines = [*_of_damage(stage, stream, found), f"{stage} {stream.name}: failed with {_named(error)}"]
            if again or found.broken or not mark_failure(root, found):
                raise DamagedInputsError("\n".join(lines)) from error
            LOG.warning("\n".join(lines))
    raise AssertionError("unreachable")


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {one_line_message(error)}"[:ERROR]


def _of_damage(stage: str, stream: Stream, found: Verification) -> list[str]:
    """Three lines: what is damaged, what comes of it, what to do."""
    first, *others = found.damages
    more = f", and {len(others)} more" if others else ""
    whole = bool(found.broken)
    return [
        f"{stage} {stream.name}: {first}{more}",
        f"{stage} {stream.name}: "
        + (
            "this stage cannot run until the table is repaired; stages that do not need it run"
            if whole
            else "the hour is marked as damaged; what needs it waits, all else is computed"
        ),
        f"{stage} {stream.name}: `transom verify {stream.name}` lists all damage; with --repair, and a run "
        "over these hours, the tables come out as they were",
    ]
