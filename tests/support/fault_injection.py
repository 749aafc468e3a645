"""A lake under attack: real submits over a landing folder that changes, some of them killed, some concurrent.

A kill counts only if it ended a driver that had made commits and had more work to do. A driver that was still
starting, or was already finished, does not count.
"""

import gzip
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from deltalake import DeltaTable

from tests.support.scenarios import Landing
from transom.core.intervals import Interval, format_hour
from transom.features.ingest.file_records import FileRecord
from transom.ledger.ledger import Ledger
from transom.storage.tables import read_rows

JOBS = Path(__file__).parents[2] / "jobs"
COMMITS = 6
"""Seconds of a run with work, before one has been measured."""


@dataclass(frozen=True)
class Kill:
    """A kill of a working driver.

    Attributes:
        commits: number of commits that the driver had made.
        writing: whether it had claimed hours and not yet recorded their results.
    """

    stage: str
    commits: int
    writing: bool

    def __str__(self) -> str:
        """Return the point of the kill as text."""
        return f"{self.stage} after {self.commits} commits{', writing' if self.writing else ''}"


class AttackedLake:
    """A lake, its landing folder, and the attacks on them."""

    def __init__(self, folder: Path, stream: str, lines: Mapping[datetime, Sequence[str]], seed: int) -> None:
        self.folder = folder
        self.lake = folder / "lake"
        self.landing = Landing(folder)
        self.lines = lines
        self.rng = random.Random(seed)
        self.kills: list[Kill] = []
        self.overtaken: Counter[str] = Counter()
        self._numbers = count(1)
        self._usual: dict[str, int] = {}
        (folder / "landing/web").mkdir(parents=True)
        (folder / "web.yaml").write_text(stream)

    def say(self, texts: str) -> None:
        """Print progress."""
        print(f"{datetime.now(UTC):%H:%M:%S} {len(self.kills)} killed: {texts}", flush=True)

    def ledger(self) -> Ledger:
        """Return the current ledger."""
        return Ledger(str(self.lake / "web"))

    def files(self) -> Mapping[str, FileRecord]:
        """Return the rows of `files` by path."""
        return {
            row["path"]: FileRecord.of_row(row) for row in read_rows(DeltaTable(str(self.lake / "web/files")))
        }

    def run(self, stage: str, interval: Interval) -> None:
        """Run undisturbed."""
        began = self._commits()
        driver, _ = self._started(stage, interval)
        output, _ = driver.communicate(timeout=600)
        assert driver.returncode == 0, output
        computed = self._commits() - began
        # A run without work is no measure, nor is the first run, which creates the tables.
        if began and computed > 3:
            self._usual[stage] = computed

    def kill(self, stage: str, interval: Interval) -> bool:
        """Start a run and kill it after some commits; return whether it was killed at work."""
        usual = self._usual.get(stage, COMMITS)
        # One commit after the other, so that each has its turn.
        required = 1 + sum(kill.stage == stage for kill in self.kills) % (usual - 1)
        delay = self.rng.choice((0.0, 0.0, 0.01, 0.03))
        began = self._commits()
        driver, run_id = self._started(stage, interval)
        while driver.poll() is None and self._commits() - began < required:
            time.sleep(0.002)
        time.sleep(delay)
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        output, _ = driver.communicate(timeout=600)
        if driver.returncode != -signal.SIGKILL:
            assert driver.returncode == 0, output
        computed, ledger = self._commits() - began, self.ledger()

        def its_own(in_ledger: str) -> bool:
            # A mark follows the name of the run there.
            return in_ledger.startswith(f"{run_id} ")

        at_work = computed > 0 and not any(its_own(run["run_id"]) for run in ledger.runs())
        if driver.returncode == 0 or not at_work:
            self.say(f"{interval}: {stage} had come to its end, or not begun ({computed} commits)")
            return False
        writing = any(e.status == "writing" and its_own(e.run_id) for e in ledger.snapshot().values())
        self.kills.append(Kill(stage, computed, writing))
        self.say(f"{interval}: {self.kills[-1]}")
        return True

    def both_at_once(self, stage: str, interval: Interval) -> None:
        """Run twice over one interval concurrently: either run may report that it was overtaken, or both."""
        drivers = [self._started(stage, interval)[0] for _ in range(2)]
        output = [driver.communicate(timeout=600)[0] for driver in drivers]
        gave_way = ["run the interval again" in texts for texts in output]
        for driver, texts, overtaken in zip(drivers, output, gave_way, strict=True):
            assert (driver.returncode == 0) != overtaken, texts
        self.overtaken[stage] += sum(gave_way)
        self.say(f"{interval}: two of {stage} at once, {sum(gave_way)} overtaken")

    def _started(self, stage: str, interval: Interval) -> "tuple[subprocess.Popen[str], str]":
        """Start a driver in a process group of its own; return it and the id of its run."""
        self.landing.noted()
        run_id = f"{stage} {next(self._numbers)}"
        command = [
            *("spark-submit", "--properties-file", os.environ["TRANSOM_SPARK_PROPERTIES"]),
            *(str(JOBS / f"{stage}.py"), "--stream", str(self.folder / "web.yaml")),
            *("--lake", str(self.lake), "--run-id", run_id),
            *("--from", format_hour(interval.start), "--to", format_hour(interval.end)),
        ]
        environment = {"TRANSOM_HOME": str(self.folder), "TRANSOM_LANDING": str(self.folder)}
        return subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True,
        ), run_id  # fmt: skip

    def _commits(self) -> int:
        """Return the number of commits in the logs of all tables."""
        return sum(1 for _ in self.lake.glob("web/*/_delta_log/*.json"))

    def path(self, hour: datetime, name: str = "") -> str:
        """Return the path of a file of an hour."""
        return f"{hour:landing/web/%Y-%m-%d/access.%H}{name}.log.gz"

    def land(self, hour: datetime, name: str, part: slice, more: str = "") -> None:
        """Land lines of an hour, and optionally other lines."""
        text = "".join(self.lines[hour][part]) + more
        self.landing.put(self.path(hour, name), gzip.compress(text.encode(), mtime=0))

    def change_files(self, hour: datetime) -> None:
        """Change the files of an hour at random; at least one of them has other content afterwards."""
        again = self.path(hour, ".again")
        match self.rng.choice(("grown", "changed", "twice", "again", "more")):
            case "grown":
                self.land(hour, "", slice(None), self.lines[hour][0] * self.rng.randint(1, 1000))
            case "twice":
                self.land(hour, ".again", slice(None, self.rng.randint(2, 40)))
            case "again" if again in self.landing.there:
                self.landing.remove(again)
            case "more":
                self.land(hour, ".z", slice(0, 2), self.lines[hour][-1] * self.rng.randint(1, 1000))
            case _:
                self.land(hour, "", slice(self.rng.randint(1, 20), None))
