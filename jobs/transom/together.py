"""Several stages in one application, each behind the gate of the one that it reads: as the DAG runs them.

The start of an application is most of what a small hour costs; in a session that is warm a stage takes
seconds. What is published does not depend on it: each stage does over the interval what it does alone.
"""

import uuid
from collections.abc import Callable, Collection, Sequence

from pyspark.sql import SparkSession

from transom.intervals import Interval
from transom.job import perform, root_of
from transom.lake.gate import Judgement, judge
from transom.lake.ledger import Ledger
from transom.stream import Stream
from transom.stream.errors import nearest
from transom.work import WORKS


def stages_of(stream: Stream, asked: Collection[str]) -> tuple[str, ...]:
    """The stages that are asked for, in the order in which they run.

    Raises:
        ValueError: none, or one that the stream does not have.
    """
    for name in asked:
        if name not in stream.stages:
            rule = f"must be stages of {stream.name}, with commas between them"
            raise ValueError(f"stages: {rule}; got {name!r}{nearest(name, stream.stages)}")
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
    cause: str = "by hand",
    began: float | None = None,
    say: Callable[[str], None] = print,
) -> list[Judgement]:
    """Runs stages over an interval, one after the other, and judges each by its gate.

    Each stage is a run of its own in the ledger; where there are several, its name is `<run_id> <stage>`.

    Args:
        command: what runs them again, with `{from}` and `{to}`; quoted with each failure.
        stages: in the order in which they run; None are all that the stream has.
        began: when the first began on the monotonic clock, where that was before its session.
        say: is told in lines what each stage did, and what its gate says.

    Returns:
        What the gate of each stage that has run says. Where one does not pass, no stage has run that reads
        what it publishes.
    """
    stages = stream.stages if stages is None else stages
    if len(stages) > 1:
        run_id = run_id or f"run-{uuid.uuid4().hex[:12]}"
    ledger = Ledger(root_of(lake, stream))
    judged: list[Judgement] = []
    # Of each stage whose gate does not pass, and of those behind it, which gate that is.
    closed: dict[str, str] = {}
    for stage in stages:
        after = stream.before(stage)
        if after in closed:
            closed[stage] = closed[after]
            continue
        own = run_id if len(stages) == 1 else f"{run_id} {stage}"
        # Only the first has waited for the session.
        before = began if not judged else None
        try:
            perform(
                spark, stage, stream, interval, WORKS[stage],
                lake=lake, ledger=ledger, run_id=own, cause=cause, began=before, say=say,
            )  # fmt: skip
        except Exception as error:
            error.add_note(f"in stage {stage} of {stream.name}, {interval}")
            raise
        judged.append(judge(ledger, stage, stream.name, interval, command, stream.heal))
        say("\n".join([*judged[-1].failures, *judged[-1].warnings, judged[-1].summary]))
        if not judged[-1].passed:
            closed[stage] = stage
    for gate in dict.fromkeys(closed.values()):
        left = [stage for stage, of in closed.items() if of == gate != stage]
        if left:
            say(f"not run, as the gate of {gate} does not pass: {', '.join(left)}")
    return judged
