"""Drawn histories of files and runs, with their expected results.

A lake has several histories next to each other: periods of three hours, further apart than `repair_window`
and every window, so that none affects another. Files are drawn for each of them. The runs, which cost the
time, are shared; they begin and end in any hour.

Expected result: existing files without a conflict count as one run reads them in a new lake. The rows of a
removed or conflicting file are those that some run read under its name. They are part of the history: the new
lake first gets these contents, and then the current ones. In the end no file is quarantined. Rows published
before an hour was quarantined remain in it, and are history, too. Everything is compared: the ledger, and
every row of every table.
"""

import gzip
import hashlib
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Literal
from unittest.mock import patch

from deltalake import DeltaTable
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.support import replay
from tests.support.crash_states import Killed, Side, watched
from tests.support.stream_harness import StreamHarness, hour, line
from transom.app.run_stage import run_chunk
from transom.core.intervals import Interval
from transom.features.ingest.file_records import source_id
from transom.findings import summaries
from transom.storage import driver_io as small
from transom.storage.fencing import RunSuperseded
from transom.storage.tables import read_rows

SIDE_BY_SIDE = 5
WIDTH, STRIDE = 3, 5
HOURS = SIDE_BY_SIDE * STRIDE
DAY = Interval(hour(0), hour(HOURS))
JUNK = b"junk\n"
NAMES = (".a", "", ".z")
"""Suffixes of an hour's files, in the order of their paths."""

LAKES = int(os.environ.get("TRANSOM_LAKES") or replay.LAKES)
"""Number of lakes drawn of each kind."""

TEXT = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1, on_conflict: ON_CONFLICT,
         equal_files: one}
key: [client]
repair_window: 1 hour
aggregates: {traffic: {measures: {n: count, sent: sum(bytes)}, levels: RANGES 2 HOURS SLIDES 1 HOUR}}
checks: {rejected_share: {at_most: 0.3}}
"""

Kind = Literal[
    "land", "change", "put_back", "grow", "spoil", "truncate", "touch", "duplicate", "rename", "vanish"
]
KINDS: tuple[Kind, ...] = (
    "land", "change", "put_back", "grow", "spoil", "truncate", "touch", "duplicate", "rename", "vanish",
)  # fmt: skip


@dataclass(frozen=True)
class Happening:
    """A change of a file: its period, its hour and name, and the other name, if any."""

    kind: Kind
    stretch: int
    hour: int
    name: int
    other_hour: int
    other_name: int
    client: int


@dataclass(frozen=True)
class Run:
    """A run of some stages over hours `[start, end)`, and the fault at one of its commits."""

    stages: tuple[str, ...]
    start: int
    end: int
    befalls: Literal["nothing", "killed", "another"]
    commit: int
    side: Side
    meanwhile: Sequence[Happening]


@dataclass(frozen=True)
class History:
    """Happenings with the run that follows them, and the last happenings."""

    steps: Sequence[tuple[Sequence[Happening], Run]]
    last: Sequence[Happening]


HAPPENING = st.builds(
    Happening,
    st.sampled_from(KINDS),
    *(st.sampled_from(range(count)) for count in (SIDE_BY_SIDE, WIDTH, len(NAMES), WIDTH, len(NAMES), 4)),
)
HAPPENINGS = st.lists(HAPPENING, min_size=2 * SIDE_BY_SIDE, max_size=4 * SIDE_BY_SIDE)
STAGES = (("ingest",), ("ingest", "aggregates"), ("ingest", "aggregates"), ("aggregates",))
INTERVALS = [(start, end) for start in range(HOURS) for end in range(start + 1, HOURS + 1)]
RUNS = st.sampled_from(INTERVALS).flatmap(
    lambda bounds: st.builds(
        Run,
        st.sampled_from(STAGES),
        *map(st.just, bounds),
        st.sampled_from(("nothing", "killed", "killed", "another")),
        st.sampled_from(range(1, 19)),
        st.sampled_from(("before", "after")),
        st.lists(HAPPENING, max_size=SIDE_BY_SIDE),
    )
)
HISTORIES = st.builds(History, st.lists(st.tuples(HAPPENINGS, RUNS), min_size=3, max_size=4), HAPPENINGS)


class Landing:
    """The landing folder of a history, and all files that existed at the start of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.there: dict[str, bytes] = {}
        self.seen: dict[tuple[str, str], list[bytes]] = {}
        self._former: dict[str, list[bytes]] = {}
        self._clock = 0

    def apply(self, what: Happening) -> None:
        """Apply the change. If no file exists, one lands instead."""
        path, other = (
            _path(what.stretch, what.hour, what.name),
            # No file may have events much later than its name.
            _path(what.stretch, max(what.hour, what.other_hour), what.other_name),
        )
        stored = self.there.get(path)
        kind = "land" if stored is None else what.kind
        match kind:
            case "land" | "change":
                self.write(path, _lines(what, 2 if kind == "land" else 3))
            case "put_back":
                self.put(path, self._former[path][-2:][0])
            case "grow":
                self.write(path, _text(stored) + _lines(what, 1))
            case "spoil":
                self.write(path, _text(stored) + JUNK * (1 + what.client))
            case "truncate":
                cut = (stored or b"")[:-14]
                # Empty files of two periods would be duplicates.
                self.put(path, cut) if _text(cut) else self.write(path, _text(stored) + _lines(what, 1))
            case "touch":
                self.put(path, stored or b"")
            case "duplicate":
                self.put(other, stored or b"")
            case "rename":
                self.put(other, stored or b"")
                self.remove(path, path != other)
            case "vanish":
                self.remove(path)

    def mended(self) -> None:
        """Remove everything that a check quarantines."""
        for path, raw in sorted(self.there.items()):
            lines = _text(raw).splitlines(keepends=True)
            good = [text for text in lines if text != JUNK]
            if len(lines) - len(good) > 0.2 * len(lines):
                self.write(path, b"".join(good))

    def noted(self) -> None:
        """Record the files that a run starting now may read."""
        for path, raw in self.there.items():
            stored = self.seen.setdefault((path, _source(raw)), [])
            if raw not in stored:
                stored.append(raw)

    def show(self, files: Mapping[str, bytes]) -> None:
        """Make the folder contain exactly some files."""
        for path in self.there.keys() - files.keys():
            self.remove(path)
        for path, raw in files.items():
            if self.there.get(path) != raw:
                self.put(path, raw)

    def write(self, path: str, text: bytes) -> None:
        self.put(path, gzip.compress(text, mtime=0))

    def put(self, path: str, raw: bytes) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(raw)
        # Independent of the machine's clock, so that a history is the same each time.
        self._clock += 1
        os.utime(file, (self._clock, self._clock))
        self.there[path] = raw
        self._former.setdefault(path, []).append(raw)

    def remove(self, path: str, really: bool = True) -> None:
        if really:
            (self.folder / path).unlink()
            del self.there[path]


def _path(stretch: int, number: int, name: int) -> str:
    return f"landing/web/{hour(STRIDE * stretch + number):%Y-%m-%d/access.%H}{NAMES[name]}.log.gz"


def _lines(what: Happening, count: int) -> bytes:
    """Return lines of the file's hour; every second file has a line of the previous hour too."""
    second = 3600 * (STRIDE * what.stretch + what.hour)
    back = 1800 if what.hour and what.client % 2 else 0
    lines = [
        line(second + 7 * (i + what.other_name) - (back if i == 1 else 0), f"10.0.0.{what.client}", 100 + i)
        for i in range(count)
    ]
    return "".join(text + "\n" for text in lines).encode()


def _text(raw: bytes | None) -> bytes:
    """Return the readable text of a file, in whole lines."""
    text = zlib.decompressobj(31).decompress(raw or b"")
    return text[: text.rfind(b"\n") + 1]


def _source(raw: bytes) -> str:
    return source_id(hashlib.sha256(zlib.decompressobj(31).decompress(raw)).hexdigest(), {})


def _broken(raw: bytes) -> bool:
    reader = zlib.decompressobj(31)
    reader.decompress(raw)
    return not reader.eof


Make = Callable[[Path], StreamHarness]
ALWAYS = (
    "run killed", "run another", "run overtaken", "hour published", "hour quarantined", "file ingested",
    "file duplicate", "file waiting", "file quarantined", "file missing",
)  # fmt: skip
"""Kinds of changes that happen in any twenty lakes."""


def assert_histories_leave_no_trace(
    spark: SparkSession, folder: Path, run_seed: int, on_conflict: Literal["hold", "replace"], *also: str
) -> None:
    """Draw histories, and compare the lake of each with a new lake of its final files.

    Args:
        run_seed: decides which histories are drawn.
        also: kinds of changes that must happen in any twenty lakes, in addition to `ALWAYS`.
    """
    kinds: Counter[str] = Counter()
    numbers = count()
    text = TEXT.replace("ON_CONFLICT", on_conflict)

    def make(of: Path) -> StreamHarness:
        os.environ["TRANSOM_HOME"] = str(of)
        return StreamHarness(spark, of, text)

    # Each try is a lake, so finding the smallest failing history takes minutes: only where more lakes are
    # drawn.
    phases = (Phase.generate, Phase.shrink) if "TRANSOM_LAKES" in os.environ else (Phase.generate,)

    @seed(run_seed)
    @settings(max_examples=LAKES, phases=phases)
    @given(HISTORIES)
    def one(history: History) -> None:
        number = next(numbers)
        # Every fifth lake counts as a large one: its files are read in tasks, its rows written by Spark, and
        # its findings computed from files.
        is_large = number % 5 == 4
        with (
            patch.dict(os.environ),
            patch.object(small, "MAX_DRIVER_BYTES", 0 if is_large else small.MAX_DRIVER_BYTES),
            patch.object(summaries, "MAX_ROWS", 0 if is_large else summaries.MAX_ROWS),
        ):
            day, landing = lake_of_history(history, make, folder / f"{number}-lived", kinds)
            recomputed = recomputed_lake(day, landing, make, folder / f"{number}-anew")
        day.assert_same(recomputed)
        if number % 5 in (0, 4):
            day.assert_ledger_true()

    one()
    # Five lakes of any other seed may lack some.
    expected = {*ALWAYS, *also} if run_seed == replay.FIXED_SEED or LAKES >= 20 else set()
    missing = expected - kinds.keys()
    assert not missing, f"never happened in {next(numbers)} lakes: {sorted(missing)}"


def lake_of_history(
    history: History, make: Make, folder: Path, kinds: Counter[str]
) -> tuple[StreamHarness, Landing]:
    """Return a lake with a history, up to date at its end.

    Args:
        kinds: counts the changes of runs and files.
    """
    day, landing = make(folder), Landing(folder)
    (folder / "landing/web").mkdir(parents=True)
    for happenings, run in history.steps:
        for what in happenings:
            landing.apply(what)
        landing.noted()
        with _befalling(run, make, landing, folder, kinds):
            _run(day, run.stages, run.start, run.end)
        kinds.update(f"file {row['status']}" for row in _files(day))
        kinds.update(f"hour {entry.status}" for entry in day.snapshot().values())
    for what in history.last:
        landing.apply(what)
    landing.mended()
    landing.noted()
    _run(day, ("ingest", "aggregates"), 0, HOURS)
    kinds.update(f"file {row['status']}" for row in _files(day))
    kinds.update(f"hour {entry.status}" for entry in day.snapshot().values())
    return day, landing


def recomputed_lake(
    day: StreamHarness, landing: Landing, make: Make, folder: Path, whole: Interval = DAY
) -> StreamHarness:
    """Return a new lake with the expected result of a history."""
    first = dict(landing.there)
    for row in _files(day):
        if row["status"] in ("missing", "conflict") and row["source_id"] is not None:
            raws = landing.seen[str(row["path"]), str(row["source_id"])]
            first[str(row["path"])] = next(
                raw for raw in raws if _broken(raw) == (row["incomplete_reason"] is not None)
            )
    recomputed, shown = make(folder), Landing(folder)
    (folder / "landing/web").mkdir(parents=True)
    if first != landing.there:
        shown.show(first)
        run_chunk("ingest", recomputed.context_of(whole))
    shown.show(landing.there)
    recomputed.run_over(whole)
    return recomputed


def _run(day: StreamHarness, stages: Sequence[str], start: int, end: int) -> None:
    for stage in stages:
        # Without ingest of an hour, its aggregates do not run.
        if stage == "aggregates" and not Path(day.root, "files/_delta_log").exists():
            continue
        day.stage(stage, start, end)


def _files(day: StreamHarness) -> Iterator[Mapping[str, object]]:
    if Path(day.root, "files").exists():
        yield from read_rows(DeltaTable(f"{day.root}/files"))


@contextmanager
def _befalling(run: Run, make: Make, landing: Landing, folder: Path, kinds: Counter[str]) -> Iterator[None]:
    """Apply a fault to the run inside."""

    def strike(number: int, side: Side) -> None:
        if (number, side) != (run.commit, run.side) or run.befalls == "nothing":
            return
        kinds[f"run {run.befalls}"] += 1
        for what in run.meanwhile:
            landing.apply(what)
        landing.noted()
        if run.befalls == "killed":
            raise Killed
        _run(make(folder), run.stages, run.start, run.end)

    try:
        with watched(strike):
            yield
    except Killed:
        pass
    except RunSuperseded:
        kinds["run overtaken"] += 1
