"""Run all stages over hours in one application, and count what each hour costs.

Usage: spark-submit counted_run.py RESULT LAKE STREAM HOUR...

It uses nothing of transom that older commits lack, so that they can be measured with it, too.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from transom.app.pipeline import run_stages
from transom.core.intervals import Interval, parse
from transom.storage.session import session
from transom.stream import load

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
    spark, stream, costs = session("counted run"), load(Path(stream_file)), []
    for hour in hours:
        before = totals(spark)
        run_stages(spark, stream, Interval.of_hour(parse(hour)), lake=lake, command="again")
        after = totals(spark)
        costs.append({name: round(after[name] - before[name], 1) for name in after})
    spark.stop()
    Path(result).write_text(json.dumps(costs))


if __name__ == "__main__":
    main(*sys.argv[1:])
