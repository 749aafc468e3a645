"""Run a job and measure the time of its phases, without changing the job.

Usage: spark-submit phases.py JOB RESULT [the job's arguments]
"""

import json
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

BEGAN = time.time()


class Clock:
    """Seconds per phase; time in nested phases counts for the innermost."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._doing: list[str] = []
        self._since = time.monotonic()

    def note(self, what: str | None) -> None:
        """Begin a phase; None ends the current one and resumes the one around it."""
        now = time.monotonic()
        if self._doing:
            at = self._doing[-1]
            self.seconds[at] = self.seconds.get(at, 0.0) + now - self._since
        self._since = now
        if what is None:
            self._doing.pop()
        else:
            self._doing.append(what)

    def keep(self, owner: Any, name: str, what: str) -> None:
        """Count the time of a function of a module or class as the phase `what`."""
        act: Callable[..., Any] = getattr(owner, name)

        @wraps(act)
        def kept(*arguments: Any, **named: Any) -> Any:
            self.note(what)
            try:
                return act(*arguments, **named)
            finally:
                self.note(None)

        setattr(owner, name, kept)


def main(job: str, result: str, *arguments: str) -> None:
    """Run the job, and write the seconds of each phase."""
    clock = Clock()
    clock.note("Python: imports")
    from transom.app import main as application
    from transom.app import pipeline as together
    from transom.engine import measurement, publisher
    from transom.engine import runner as refresh
    from transom.features.ingest import file_checks as contents
    from transom.features.ingest import snapshot as scene
    from transom.features.ingest import stage as ingest
    from transom.features.ingest.hour_rows import HourRows
    from transom.ledger.ledger import Ledger
    from transom.storage.store import PinnedTables, Store

    for module in (measurement, contents):
        clock.keep(module, "evaluate_checks", "Great Expectations")
    clock.keep(application, "load", "the stream file")
    clock.keep(application, "session", "Spark's session")
    clock.keep(together, "evaluate_gate", "the gate's words")
    clock.keep(scene, "_inventory", "listing files")
    for name in ("claim", "publish", "record_checks", "record_run"):
        clock.keep(Ledger, name, "ledger: commits")
    for name in ("snapshot", "checks", "failures", "runs"):
        clock.keep(Ledger, name, "ledger: reads")
    clock.keep(Store, "create", "tables opened")
    clock.keep(Store, "pin", "tables pinned")
    clock.keep(PinnedTables, "stored", "files known")
    clock.keep(Store, "write", "tables written")
    clock.keep(ingest, "check_files", "reading and parsing, by Spark")
    clock.keep(PinnedTables, "_load", "tables' snapshots, by Delta")
    clock.keep(refresh, "plan", "what is stale")
    clock.keep(refresh, "StagedOutput", "computing and writing, by Spark")
    clock.keep(refresh, "_writes", "queries put together")
    clock.keep(HourRows, "by_table", "queries put together")
    clock.keep(publisher, "measure", "computing and digests, by Spark")
    clock.keep(refresh, "expire", "state dropped")
    clock.note(None)
    clock.note("all else")
    stages = None if job == "run" else [job]
    application.run(job, application.arg_parser("").parse_args(arguments), stages)
    clock.note(None)
    Path(result).write_text(json.dumps({"began": BEGAN, "ended": time.time(), "seconds": clock.seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
