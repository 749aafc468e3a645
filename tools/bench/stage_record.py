"""Run a job in one application, and record of each stage its times, its rows and what Spark spilled.

Usage: spark-submit stage_record.py RESULT [the job's arguments]
"""

import json
import sys
import time
from functools import wraps
from pathlib import Path
from typing import Any

SUMS = ("memoryBytesSpilled", "diskBytesSpilled", "inputBytes", "shuffleWriteBytes")
"""Metrics of Spark's stages, summed over these."""
RUN_STAGE = "run_stage"
"""The function of the pipeline that is recorded."""
ALL_STAGES = 1_000_000
"""The number of Spark's stages to keep. By default, Spark forgets all but the last 1,000."""


def settings() -> list[object]:
    """Return options of spark-submit with which no metric is lost."""
    return ["--conf", f"spark.ui.retainedStages={ALL_STAGES}"]


class SparkMetrics:
    """The metrics of Spark's stages since the last call."""

    def __init__(self) -> None:
        self._known: set[tuple[int, int]] = set()

    def since(self, spark: Any) -> dict[str, int]:
        """Return the sums over the stages that are new."""
        from transom.storage.session_on_demand import session_of

        context = session_of(spark)._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        store = context.statusStore()
        others = [getattr(store, f"stageList$default${number}")() for number in (2, 3, 4, 5)]
        stages = store.stageList(None, *others)
        sums = dict.fromkeys(SUMS, 0)
        for place in range(stages.size()):
            stage = stages.apply(place)
            key = stage.stageId(), stage.attemptId()
            if key in self._known:
                continue
            self._known.add(key)
            for name in SUMS:
                sums[name] += getattr(stage, name)()
        return sums


def main(result: str, *arguments: str) -> None:
    """Run all stages, and write a record per stage."""
    from transom.app import main as application
    from transom.app import pipeline

    records: list[dict[str, Any]] = []
    metrics, run_stage = SparkMetrics(), getattr(pipeline, RUN_STAGE)

    @wraps(run_stage)
    def recorded(spark: Any, stage: str, *others: Any, **named: Any) -> Any:
        began = time.time()
        outcome = run_stage(spark, stage, *others, **named)
        ended = time.time()
        records.append(
            {"stage": stage, "began": began, "ended": ended, "rows": outcome.rows_out, **metrics.since(spark)}
        )
        Path(result).write_text(json.dumps(records))
        return outcome

    setattr(pipeline, RUN_STAGE, recorded)
    # Of two stages at once, neither's cost could be separated from the other's.
    pipeline.AT_ONCE = 1
    application.run("run", application.arg_parser("").parse_args(arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
