"""Run several stages in one application, each after the gate of its upstream stage, as the DAG does.

The start of an application is most of the cost of a small hour. In a warm session, a stage takes seconds. Two
stages run at once if neither needs the other: much of a stage's time is work of one core. The results are the
same as those of separate applications.
"""

import logging
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from transom.app.freshness import stale_hours
from transom.app.run_stage import root_of, run_stage
from transom.app.verify import DamagedInputsError, explain_failure
from transom.core.intervals import Interval
from transom.core.partitions import SOURCE_STAGE, PartitionKey
from transom.engine.damage_marks import mark_unreadable
from transom.engine.gate import GateResult, evaluate_gate
from transom.engine.verification import Verification
from transom.ledger.ledger import Ledger
from transom.ledger.waivers import entries_of
from transom.spec.errors import did_you_mean
from transom.spec.stream import Stream
from transom.storage.session_on_demand import AnySession, cancel_jobs, second_session
from transom.storage.tables import one_line_message

LOG = logging.getLogger(__name__)
MAX_ERROR = 500
"""The maximum number of quoted characters of an error: Spark appends stack frames of its own code."""
AT_ONCE = 2
"""The maximum number of stages at once, 1 or 2. A third one adds little on two cores and needs a session."""


@dataclass(frozen=True)
class _Attempt:
    """The outcome of a stage and its gate.

    Attributes:
        result: the result of its gate; None if it has none.
        closed_by: the stage whose gate closes the stages downstream; None if they may run.
        damage: why the stage could not run; None if it could.
    """

    result: GateResult | None = None
    closed_by: str | None = None
    damage: str | None = None


class _DamageMarks:
    """The partitions that the stages of this application have marked as damaged.

    Stages that run at once may find the same damage.

    Args:
        root: the folder of the stream's tables.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.partitions: Set[PartitionKey] = frozenset()
        self._lock = threading.Lock()

    def add(self, damage: Verification) -> Set[PartitionKey]:
        """Mark the damaged partitions; return those that are marked now, by any of the stages."""
        with self._lock:
            marked = mark_unreadable(Ledger(self.root), damage, f"damage {uuid.uuid4().hex[:12]}")
            self.partitions |= frozenset(marked)
            return self.partitions & damage.reasons.keys()


def select_stages(stream: Stream, names: Collection[str]) -> tuple[str, ...]:
    """Return the named stages, in the order in which they run.

    Raises:
        ValueError: a name is not that of a stage of the stream.
    """
    for name in names:
        if name not in stream.stages:
            rule = f"must be stages of {stream.name}, with commas between them"
            raise ValueError(f"stages: {rule}; got {name!r}{did_you_mean(name, stream.stages)}")
    return tuple(stage for stage in stream.stages if stage in names)


def run_stages(
    spark: AnySession,
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
    """Run stages over an interval, evaluate the gate of each, and log the results.

    Each stage is a separate run in the ledger. If there are several, its name is `<run_id> <stage>`. After a
    gate that fails, the stages downstream do not run, unless `past_gates` is true.

    Args:
        spark: the session.
        stream: the stream.
        interval: the interval.
        lake: the path or URI of the lake.
        command: the command line that runs the stages again, with `{from}` and `{to}`, for messages.
        stages: the stages, in the order in which they run. Default: all stages of the stream.
        run_id: the name of the run. Default: a unique one.
        trigger: what started the run, for `runs`.
        began: the start of the first stage on the monotonic clock, if it was before the session's start.
        recompute: whether fresh hours of the interval are computed and written, too.
        past_gates: whether stages run after a gate that fails. They compute the hours that do not need
            quarantined ones.

    Returns:
        The result of each gate whose stage has run.

    Raises:
        DamagedInputsError: a table is damaged; all stages that do not need it have run.
    """
    root = root_of(lake, stream)
    stages = stream.stages if stages is None else stages
    if len(stages) > 1:
        run_id = run_id or f"run-{uuid.uuid4().hex[:12]}"
    # A stage changes the settings of its session. The session that was used last is used next, so that a
    # second one is created only for two stages at once.
    free = [(spark, Ledger(root))]
    if 1 < AT_ONCE < len(stages) and (second := second_session(spark)) is not None:
        free.insert(0, (second, Ledger(root, other=free[0][1])))
    sessions = [own for own, _ in free]
    marks = _DamageMarks(root)
    done: dict[str, _Attempt] = {}
    running: dict[Future[_Attempt], tuple[str, tuple[AnySession, Ledger]]] = {}
    waiting = list(stages)
    errors: list[BaseException] = []
    with ThreadPoolExecutor(len(free)) as pool, _cancelling(sessions, running):
        while waiting or running:
            for stage in list(waiting):
                upstream = stream.upstream_stage(stage)
                if upstream in done and (closed_by := done[upstream].closed_by):
                    done[stage] = _Attempt(closed_by=closed_by)
                elif free and (upstream in done or upstream not in stages):
                    own = free.pop()
                    run = partial(
                        _run_and_judge, *own, stage, stream, interval, command,
                        lake=lake, run_id=run_id if len(stages) == 1 else f"{run_id} {stage}",
                        trigger=trigger, recompute=recompute,
                        # The time before the first stage is part of it.
                        began=began if stage == stages[0] else None,
                    )  # fmt: skip
                    running[pool.submit(_attempt, run, stage, stream, marks, past_gates)] = stage, own
                else:
                    continue
                waiting.remove(stage)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                stage, own = running.pop(future)
                free.append(own)
                if (error := future.exception()) is None:
                    done[stage] = future.result()
                    continue
                error.add_note(f"in stage {stage} of {stream.name}, {interval}")
                # The other stage ends first: it may be about to publish.
                waiting.clear()
                if errors:
                    LOG.error("%s of %s failed, too", stage, stream.name, exc_info=error)
                errors.append(error)
    if errors:
        raise errors[0]
    for gate in dict.fromkeys(one.closed_by for one in done.values()):
        skipped = [stage for stage in stages if done[stage].closed_by == gate and stage != gate]
        if gate and skipped:
            LOG.warning(f"not run, as the gate of {gate} does not pass: {', '.join(skipped)}")
    if failures := [damage for stage in stages if (damage := done[stage].damage)]:
        raise DamagedInputsError("\n".join(failures))
    return [result for stage in stages if (result := done[stage].result)]


@contextmanager
def _cancelling(sessions: Sequence[AnySession], running: Collection[Future[_Attempt]]) -> Iterator[None]:
    """Within the context, an interrupt from the keyboard cancels the Spark jobs of the running stages.

    Under spark-submit, it ends Java, and all jobs with it.
    """
    try:
        yield
    except KeyboardInterrupt:
        LOG.warning("interrupted: the Spark jobs of the running stages are cancelled")
        while True:
            # A stage may begin another job before it notices.
            for spark in sessions:
                cancel_jobs(spark)
            if not wait(running, timeout=1).not_done:
                raise


def _attempt(
    run: Callable[[], GateResult], stage: str, stream: Stream, marks: _DamageMarks, past_gates: bool
) -> _Attempt:
    try:
        result = _retry_damaged(run, stage, stream, marks)
    except DamagedInputsError as error:
        return _Attempt(closed_by=stage, damage=str(error))
    for warning in [*result.failures, *result.warnings]:
        LOG.warning(warning)
    for line in [*result.accepted, result.summary]:
        LOG.info(line)
    return _Attempt(result, None if result.passed or past_gates else stage)


def _run_and_judge(
    spark: AnySession,
    ledger: Ledger,
    stage: str,
    stream: Stream,
    interval: Interval,
    command: str,
    **options: Any,
) -> GateResult:
    run_stage(spark, stage, stream, interval, ledger=ledger, **options)
    stale, waivers = stale_hours(stream, ledger, stage, interval), entries_of(stream.waivers)
    outlets = None if stage == SOURCE_STAGE else stream.feature(stage).outlets
    return evaluate_gate(
        ledger, stage, stream.name, interval, command, stream.repair_window, waivers, stale, stream.built_in,
        outlets,
    )  # fmt: skip


def _retry_damaged(
    attempt: Callable[[], GateResult], stage: str, stream: Stream, marks: _DamageMarks
) -> GateResult:
    """Run a stage and evaluate its gate. If it reads unreadable files, mark their hours and run it once more.

    The second run computes everything that does not need these hours.

    Raises:
        DamagedInputsError: the second run finds damage again, or a table cannot be opened.
    """
    for is_retry in (False, True):
        known = marks.partitions
        try:
            return attempt()
        except Exception as error:
            damage = explain_failure(stream, marks.root, stage, error)
            if damage is None:
                raise
            failure = f"failed with {f'{type(error).__name__}: {one_line_message(error)}'[:MAX_ERROR]}"
            message = "\n".join(
                f"{stage} {stream.name}: {line}" for line in [*_format_damage(stream, damage), failure]
            )
            # A retry helps only if a partition is marked since this attempt began.
            if is_retry or damage.broken or not marks.add(damage) - known:
                raise DamagedInputsError(message) from error
            LOG.warning(message)
    raise AssertionError("unreachable")


def _format_damage(stream: Stream, damage: Verification) -> list[str]:
    """Return three lines: the damage, its consequence, and the remedy."""
    first, *others = damage.damages
    more = f", and {len(others)} more" if others else ""
    return [
        f"{first}{more}",
        "this stage cannot run until the table is repaired; stages that do not need it run"
        if damage.broken
        else "the hour is marked as damaged; what needs it waits, all else is computed",
        f"`transom verify {stream.name}` lists all damage; with --repair, and a run over these hours, the "
        "tables come out as they were",
    ]
