"""Run all stages over hours in one application, and count what each hour costs.

Usage: spark-submit counted_run.py RESULT LAKE STREAM HOUR...

Older commits, whose modules have other names, can be measured with it, too.
"""

import json
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from transom.stream import load

MODULES = {
    "transom.app.pipeline": "transom.together",
    "transom.core.intervals": "transom.intervals",
    "transom.storage.session": "transom.lake.session",
}
"""The modules that it uses, with their names in commits before version 0.2."""
opened = 0


def count_openings() -> None:
    """Count the Delta tables that are opened, which reads their whole log."""
    open_table = DeltaTable.__init__

    def counted(*arguments: Any, **named: Any) -> None:
        global opened
        opened += 1
        open_table(*arguments, **named)

    DeltaTable.__init__ = counted  # type: ignore[method-assign]


def totals(spark: SparkSession) -> dict[str, float]:
    """Return what the application has done so far: jobs, executions, openings, and seconds of CPU."""
    java = next(process for process in psutil.Process().parents() if "java" in process.name())
    workers = 0.0
    for process in java.children(recursive=True):
        if process.pid != psutil.Process().pid:
            try:
                workers += sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:
                continue
    own = java.cpu_times()
    return {
        "jobs": spark._jsc.sc().statusStore().jobsList(None).size(),
        "executions": spark._jsparkSession.sharedState().statusStore().executionsCount(),
        "opened": opened,
        "seconds": time.monotonic(),
        "java_cpu_s": own.user + own.system,
        "driver_cpu_s": time.process_time(),
        "workers_cpu_s": workers,
    }


def main(result: str, lake: str, stream_file: str, *hours: str) -> None:
    """Run the hours in turn, and write what each of them cost."""
    count_openings()
    pipeline, intervals, sessions = map(
        import_module, MODULES if find_spec("transom.app") else MODULES.values()
    )
    spark, stream, costs = sessions.session("counted run"), load(Path(stream_file)), []
    for hour in hours:
        before = totals(spark)
        interval = intervals.Interval.of_hour(intervals.parse(hour))
        pipeline.run_stages(spark, stream, interval, lake=lake, command="again")
        after = totals(spark)
        costs.append({name: round(after[name] - before[name], 1) for name in after})
    spark.stop()
    Path(result).write_text(json.dumps(costs))


if __name__ == "__main__":
    main(*sys.argv[1:])
