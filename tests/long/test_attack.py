"""A day of a real log under attack: real submits, in random order, killed and run side by side.

Twenty-four hours of requests, whose files come late, grow, change and change back, are there under a
second name, vanish; at least twenty drivers die by SIGKILL while they claim, write and publish. In the
end every table is what one run makes of what lies there. A target of its own (`make attack`);
TRANSOM_HOURS and TRANSOM_KILLS take less, for a try, TRANSOM_SEED another course of things.
"""

import gzip
import os
import random
import signal
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sample_logs

from histories import Landing, told_anew
from house import House
from transom.intervals import HOUR, Interval, format_hour

FIRST = datetime(2015, 5, 18, 0, tzinfo=UTC)
HOURS = int(os.environ.get("TRANSOM_HOURS", "24"))
KILLS = int(os.environ.get("TRANSOM_KILLS", "20"))
SEED = int(os.environ.get("TRANSOM_SEED", "20150518"))
STREAM = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expect: 1, on_change: replace}
key: [client]
heal: 3 hours
aggregate:
  traffic:
    measures: {n: count, sent: sum(bytes)}
    levels: RANGES 6 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES
  site: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
"""
STAGES = ("ingest", "aggregate")
JOBS = Path(__file__).parents[2] / "jobs"
WHOLE = Interval(FIRST, FIRST + HOURS * HOUR)


class Siege:
    """A lake, its landing folder, and whoever attacks them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = folder / "lake"
        self.landing = Landing(folder)
        self.dice = random.Random(SEED)
        self.lines = {hour: lines for hour, lines in sample_logs.apache().items() if hour in WHOLE}
        self.killed = self.submits = self.overtaken = 0
        self.struck: list[str] = []
        (folder / "landing/web").mkdir(parents=True)
        (folder / "web.yaml").write_text(STREAM)

    def say(self, words: str) -> None:
        """Tells how far it is."""
        print(
            f"{datetime.now(UTC):%H:%M:%S} {self.submits} submits, {self.killed} killed: {words}", flush=True
        )

    def started(self, stage: str, interval: Interval) -> "subprocess.Popen[str]":
        """A driver, in a process group of its own."""
        self.submits += 1
        self.landing.noted()
        return subprocess.Popen(
            [
                *("spark-submit", "--properties-file", os.environ["TRANSOM_SPARK_PROPERTIES"]),
                *(str(JOBS / f"{stage}.py"), "--stream", str(self.folder / "web.yaml")),
                *("--lake", str(self.lake), "--from", format_hour(interval.start)),
                *("--to", format_hour(interval.end)),
            ],
            env={**os.environ, "TRANSOM_HOME": str(self.folder), "TRANSOM_LANDING": str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def commits(self) -> int:
        """How many commits the logs of all tables hold."""
        return sum(1 for _ in self.lake.glob("web/*/_delta_log/*.json"))

    def run(self, stage: str, interval: Interval) -> None:
        """A run that nobody disturbs."""
        driver = self.started(stage, interval)
        said, _ = driver.communicate(timeout=600)
        assert driver.returncode == 0, said

    def kill(self, stage: str, interval: Interval) -> bool:
        """A run that is killed some moment after a drawn commit; whether it was alive."""
        began, wanted = self.commits(), self.dice.randint(0, 8)
        delay = self.dice.choice((0.0, 0.0, 0.05, 0.2, 0.5, 1.0))
        driver = self.started(stage, interval)
        while driver.poll() is None and self.commits() - began < max(wanted, 1):
            time.sleep(0.002)
        if wanted:
            time.sleep(delay)
        alive = driver.poll() is None
        if alive:
            os.killpg(driver.pid, signal.SIGKILL)
        said, _ = driver.communicate(timeout=600)
        if not alive:
            assert driver.returncode == 0, said
            return False
        self.killed += 1
        self.struck.append(f"{stage} after {self.commits() - began} commits")
        self.say(f"{interval}: {self.struck[-1]}")
        return True

    def both_at_once(self, stage: str, interval: Interval) -> None:
        """Two runs of one interval side by side: either may say that it was overtaken, and both."""
        drivers = [self.started(stage, interval) for _ in range(2)]
        said = [driver.communicate(timeout=600)[0] for driver in drivers]
        overtaken = ["run the interval again" in words for words in said]
        for driver, words, gave_way in zip(drivers, said, overtaken, strict=True):
            assert (driver.returncode == 0) != gave_way, words
        self.overtaken += sum(overtaken)
        self.say(f"{interval}: two at once, {sum(overtaken)} overtaken")

    def path(self, hour: datetime, name: str = "") -> str:
        """Where a file of an hour lies."""
        return f"{hour:landing/web/%Y-%m-%d/access.%H}{name}.log.gz"

    def land(self, hour: datetime, part: slice, name: str = "", more: str = "") -> None:
        """Lands some lines of an hour."""
        text = "".join(self.lines[hour][part]) + more
        self.landing.put(self.path(hour, name), gzip.compress(text.encode(), mtime=0))

    def happens(self, hours: list[datetime]) -> None:
        """Something becomes of a file of some hour: near ones are in the reach of `heal`, others are not."""
        hour = self.dice.choice(hours)
        changed = self.lines[hour][0].replace(" 200 ", " 206 ")
        late = self.path(hour, ".late")
        match self.dice.choice(("late", "grown", "changed", "back", "twice", "vanished", "again")):
            case "late":
                self.land(hour, slice(0, 3), ".late", more=changed)
            case "grown":
                self.land(hour, slice(None), more=changed * self.dice.randint(1, 3))
            case "changed":
                self.land(hour, slice(1, None), more=changed)
            case "back":
                self.land(hour, slice(None))
            case "twice":
                self.land(hour, slice(None), ".earlier")
            case "vanished" if late in self.landing.there:
                self.landing.remove(late)
            case "again" if self.path(hour, ".earlier") in self.landing.there:
                self.landing.remove(self.path(hour, ".earlier"))
            case _:
                self.land(hour, slice(0, 2), ".late")


@pytest.mark.long
def test_a_day_under_attack(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    siege = Siege(tmp_path)
    order = list(siege.lines)
    siege.dice.shuffle(order)
    assert len(order) == HOURS
    for hour in order:
        # Half of each file is there in time at first, and some have not come at all.
        if siege.dice.random() < 0.9:
            siege.land(hour, slice(0, len(siege.lines[hour]) // 2))
    for number, hour in enumerate(order):
        interval = Interval(hour, hour + HOUR)
        for _ in range(2):
            siege.happens(order[: number + 2])
        for stage in STAGES:
            left = HOURS - number
            if siege.killed < KILLS and siege.dice.random() < (KILLS - siege.killed) / left / 1.2:
                siege.kill(stage, interval)
                if siege.dice.random() < 0.5:
                    siege.happens(order[: number + 1])
                # Left as it is, for a later hour's run to heal, or the last.
                if number and siege.dice.random() < 0.3:
                    continue
            if number == HOURS // 2:
                siege.land(hour, slice(None), ".late", more=siege.lines[hour][0])
                siege.both_at_once(stage, interval)
            else:
                siege.run(stage, interval)
        if number % 6 == 5:
            siege.run("ingest", Interval(order[number - 3], order[number - 3] + HOUR))
        siege.say(f"{interval} done")
    while siege.killed < KILLS:
        for hour in siege.dice.sample(order, 3):
            siege.happens([hour])
        siege.kill(siege.dice.choice(STAGES), WHOLE)
    for hour in order:
        if siege.path(hour) not in siege.landing.there:
            siege.land(hour, slice(None))
    for stage in STAGES:
        siege.run(stage, WHOLE)
    siege.say("the last run is done; one run over what lies there now")

    spark = request.getfixturevalue("spark")
    monkeypatch = request.getfixturevalue("monkeypatch")

    def make(folder: Path) -> House:
        monkeypatch.setenv("TRANSOM_HOME", str(folder))
        return House(spark, folder, STREAM)

    day = make(tmp_path)
    anew = told_anew(day, siege.landing, make, tmp_path / "anew", WHOLE)
    day.assert_same(anew)
    day.assert_ledger_true()
    assert {entry.status for entry in day.book().values()} == {"published"}
    assert siege.killed >= KILLS
    print("\n".join(sorted(siege.struck)))
    siege.say(f"every table is as one run's; seed {SEED}")
