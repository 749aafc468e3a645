"""A day of a real log under attack: real submits, in random order, killed and run concurrently.

Twenty-four hours of requests, whose files are late, grow, change and change back, have a second name, vanish.
At least three drivers of every stage die by SIGKILL at work, after different commits; others run two at once.
In the end every table equals that of one run over the final files. A target of its own (`make attack`);
TRANSOM_HOURS and TRANSOM_KILLS reduce it, TRANSOM_SEED varies it.
"""

import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

import sample_logs
from tests.support.fault_injection import AttackedLake
from tests.support.scenarios import recomputed_lake
from tests.support.stream_harness import StreamHarness
from transom.core.intervals import HOUR, Interval
from transom.features.ingest.file_records import FileRecord, Status
from transom.features.registry import STAGES

FIRST = datetime(2015, 5, 18, 0, tzinfo=UTC)
HOURS = int(os.environ.get("TRANSOM_HOURS", "24"))
KILLS = int(os.environ.get("TRANSOM_KILLS", "24"))
KILLS_OF_EACH = max(KILLS // len(STAGES), 2)
HEAL = 2 * HOUR
STREAM = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1, on_conflict: replace,
         equal_files: one}
key: [client]
repair_window: 2 hours
aggregates:
  traffic:
    measures: {n: count, sent: sum(bytes), pages: distinct(path)}
    levels: RANGES 6 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES
    fit: {unit: 10 minutes, missing: zero}
    aging: [0.3, 1]
    recurring: [status]
    alert: {many: {when: n > 20, level: 1}, growing: slope_sent > 0 and n > 5}
  site: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
patterns:
  returned:
    within: 5 hours
    max_records: 30
    merge_gap: 20 minutes
    carry: [path]
    steps:
      - {id: seen, where: status = 200, times: 2, distinct: path}
      - {id: again, where: status = 200, gap: {min: 40 minutes}}
frames:
  served: {kind: threshold, where: status = 200, value: bytes, on_duplicate_time: sum, idle: 2 hours}
fills:
  around: {frame: served, lead: 10 minutes, lag: 10 minutes, measures: {sent: sum(bytes)}}
persistence:
  regulars: {item: [client], slot: 30 minutes, window: 5 hours, alpha: 0.6, epsilon: 0.4}
frequency:
  pages: {item: [path], window: 4 hours, tick: 10 minutes, epsilon: 0.1, delta: 0.1}
  answers: {item: [client, status], window: 3 hours, tick: 20 minutes, epsilon: 0.2, delta: 0.2,
            variant: splitter}
"""
WHOLE = Interval(FIRST, FIRST + HOURS * HOUR)
assert HOURS >= 6, "of each hour, another one has to be further away than `repair_window`"

Files = Mapping[str, FileRecord]


class Fate:
    """The changes of one file, in addition to the others of its hour.

    Attributes:
        kind: a kind of change that a landing folder must survive.
        hour: of the file.
    """

    def __init__(self, siege: AttackedLake, kind: str, hour: datetime, number: int) -> None:
        self.siege, self.kind, self.hour = siege, kind, hour
        self.name, self.earlier = f".m{number}", f".a{number}"
        self.path = siege.path(hour, self.name)
        # Lines with which no other file of the hour begins.
        self.lines = len(siege.lines[hour]) // 2 + 4 * number
        self.sources: list[str | None] = []
        if "late" not in kind:
            self.land(0, 5)

    def land(self, first: int, last: int, name: str | None = None) -> None:
        """Land the lines `[first, last)` of its own."""
        part = slice(self.lines + first, self.lines + last)
        self.siege.land(self.hour, self.name if name is None else name, part)

    def run_next(self, near: bool) -> datetime:
        """Return an hour whose run has this one within `repair_window`, or outside it; never this hour
        itself.
        """
        away = HOUR if near else HEAL + HOUR
        return self.hour + away if self.hour + away in WHOLE else self.hour - away

    def steps(self) -> Iterator[tuple[datetime, Status]]:
        """Apply the changes, one after the other: yield the hour whose run must see it, and the file's status
        then.
        """
        match self.kind:
            case "late within the repair window":
                self.land(0, 5)
                yield self.run_next(near=True), "ingested"
            case "late beyond the repair window":
                self.land(0, 5)
                yield self.run_next(near=False), "waiting"
                yield self.hour, "ingested"
            case "changed":
                self.land(1, 5)
                yield self.hour, "ingested"
            case "changed and changed back":
                self.land(1, 5)
                yield self.hour, "ingested"
                self.land(0, 5)
                yield self.hour, "ingested"
            case "grown":
                self.land(0, 6)
                yield self.hour, "ingested"
            case "duplicated under an earlier name":
                self.land(0, 5, self.earlier)
                yield self.hour, "duplicate"
            case "vanished":
                self.siege.landing.remove(self.path)
                yield self.hour, "missing"

    def record(self, files: Files) -> None:
        """Record which content of it is published."""
        self.sources.append(files[self.path].source_id if self.path in files else None)

    def assert_happened(self, files: Files) -> None:
        """Assert that the published contents, look by look, follow its changes."""
        letters: dict[str | None, str] = {None: "-"}
        previous = "".join(letters.setdefault(source, "abc"[len(letters) - 1]) for source in self.sources)
        assert previous == FATES[self.kind], self.kind
        if self.kind == "duplicated under an earlier name":
            first, second = (files[self.siege.path(self.hour, name)] for name in (self.earlier, self.name))
            assert (first.source_id, first.status) == (second.source_id, "ingested")


FATES = {
    "late within the repair window": "-a",
    "late beyond the repair window": "--a",
    "changed": "ab",
    "changed and changed back": "aba",
    "grown": "ab",
    "duplicated under an earlier name": "aa",
    "vanished": "aa",
}
"""Each kind of file, with its published contents after the first run of its hour and after each step; `-`
means none.
"""


class Attack:
    """The course of the attack: one run after the other, some of which are killed first."""

    def __init__(self, siege: AttackedLake, runs: Mapping[str, int]) -> None:
        self.siege = siege
        self.left = Counter(runs)

    def run(self, stage: str, interval: Interval, *, spare: bool = False) -> None:
        """Run. Where it is its turn, a run is killed before it.

        Args:
            spare: sometimes leaves the result of a killed run for a later one to repair.
        """
        siege = self.siege
        killed = sum(kill.stage == stage for kill in siege.kills)
        required = max(KILLS_OF_EACH - killed, 0) / max(self.left[stage], 1)
        self.left[stage] -= 1
        if siege.rng.random() < 1.3 * required and siege.kill(stage, interval):
            if spare and siege.rng.random() < 0.4:
                return
            if stage == "ingest" and siege.rng.random() < 0.5:
                siege.change_files(interval.start)
        siege.run(stage, interval)

    def look(self, fate: Fate, hour: datetime, status: Status) -> None:
        """Run an hour, after which a file must have a status."""
        self.run("ingest", Interval(hour, hour + HOUR))
        files = self.siege.files()
        assert files[fate.path].status == status, (fate.kind, fate.path, hour)
        fate.record(files)
        self.siege.say(f"{fate.kind}: {fate.path} is {status} after the run of {hour:%H:%M}")

    def strike(self, stage: str, hour: datetime) -> None:
        """Start a run of all hours with work, and kill it."""
        self.siege.change_files(hour)
        if stage != "ingest":
            self.siege.run("ingest", WHOLE)
        self.siege.kill(stage, WHOLE)

    def collide(self, hour: datetime) -> None:
        """Run each stage twice concurrently, until one run of each had to give way."""
        interval = Interval(hour, hour + HOUR)
        for stage in STAGES:
            for _ in range(4):
                self.siege.change_files(hour)
                if stage != "ingest":
                    self.siege.run("ingest", interval)
                self.siege.both_at_once(stage, interval)
                if self.siege.overtaken[stage]:
                    break
            self.siege.run(stage, interval)


def fates_of(siege: AttackedLake, order: Sequence[datetime]) -> list[Fate]:
    """Return a kind of change for each hour, and each kind at least once."""
    kinds, fates = list(FATES), []
    for number in range(max(HOURS, len(kinds))):
        hour, kind = order[number % HOURS], kinds[number % len(kinds)]
        fates.append(Fate(siege, kind, hour, number // HOURS))
    return fates


@pytest.mark.long
def test_day_under_attack_equals_one_run(
    request: pytest.FixtureRequest, tmp_path: Path, run_seed: int
) -> None:
    lines = {hour: lines for hour, lines in sample_logs.apache().items() if hour in WHOLE}
    siege = AttackedLake(tmp_path, STREAM, lines, run_seed)
    order = list(lines)
    assert len(order) == HOURS
    siege.rng.shuffle(order)
    fates = fates_of(siege, order)
    attack = Attack(siege, dict.fromkeys(STAGES, HOURS) | {"ingest": HOURS + len(fates)})
    for hour in order:
        # Half of each file is on time at first, and some have not arrived at all.
        if siege.rng.random() < 0.9:
            siege.land(hour, "", slice(0, len(lines[hour]) // 2))
    required: deque[Fate] = deque()
    for number, hour in enumerate(order):
        interval = Interval(hour, hour + HOUR)
        siege.change_files(siege.rng.choice(order[: number + 2]))
        # Its own files are known before they change.
        attack.run("ingest", interval)
        for fate in fates:
            if fate.hour == hour:
                fate.record(siege.files())
                required.append(fate)
        for stage in STAGES[1:]:
            attack.run(stage, interval, spare=True)
        if number == HOURS // 2:
            attack.collide(hour)
        # Other runs take place before a file changes further, and see as much of it as they do.
        for fate in [required.popleft() for _ in range(len(required) - (2 if number < HOURS - 1 else 0))]:
            for at, status in fate.steps():
                attack.look(fate, at, status)
            fate.assert_happened(siege.files())
        siege.say(f"{interval} done")
    for stage in STAGES:
        for _ in range(KILLS):
            if not is_attacked(siege, stage):
                attack.strike(stage, siege.rng.choice(order))
    # A whole number of kills of each stage may be fewer in all.
    for number in range(KILLS):
        if len(siege.kills) < KILLS:
            attack.strike(STAGES[number % len(STAGES)], siege.rng.choice(order))
    for stage in STAGES:
        siege.run(stage, WHOLE)
    siege.say("the last run is done; one run over what lies there now")

    spark = request.getfixturevalue("spark")
    monkeypatch = request.getfixturevalue("monkeypatch")

    def make(folder: Path) -> StreamHarness:
        monkeypatch.setenv("TRANSOM_HOME", str(folder))
        return StreamHarness(spark, folder, STREAM)

    day = make(tmp_path)
    recomputed = recomputed_lake(day, siege.landing, make, tmp_path / "anew", WHOLE)
    day.assert_same(recomputed)
    of_log = [
        [finding for finding in lake.findings() if finding.kind in ("alert", "episode", "frame")]
        for lake in (day, recomputed)
    ]
    assert of_log[0] == of_log[1] != []
    day.assert_ledger_true()
    assert {entry.status for entry in day.snapshot().values()} == {"published"}
    print("\n".join(sorted(map(str, siege.kills))))
    assert_attacked(siege, fates)
    siege.say(f"every table is as one run's; seed {run_seed}")


def is_attacked(siege: AttackedLake, stage: str) -> bool:
    """Return whether drivers of a stage were killed often enough, after different commits, and while writing.

    A driver can make several commits before the attack notices the first one.
    """
    kills = [kill for kill in siege.kills if kill.stage == stage]
    varied = len({kill.commits for kill in kills}) >= min(KILLS_OF_EACH - 1, 3)
    return len(kills) >= KILLS_OF_EACH and varied and any(kill.writing for kill in kills)


def assert_attacked(siege: AttackedLake, fates: Sequence[Fate]) -> None:
    """Assert that no kind of attack was omitted."""
    assert {fate.kind for fate in fates} == FATES.keys()
    for stage in STAGES:
        assert is_attacked(siege, stage), f"{stage}: too few kills, or all after the same commits"
        assert siege.overtaken[stage] >= 1
    assert len(siege.kills) >= KILLS
