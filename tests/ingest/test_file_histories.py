"""For any history of files and any split into runs, rows and their description agree."""

from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import rare_case
from tests.support.file_factories import HOUR, RULES, after, at, content, listed
from transom.core.intervals import Interval
from transom.features.ingest.file_decisions import Decisions, decide
from transom.features.ingest.file_records import FileContent, FileRecord, Status, source_id
from transom.features.ingest.file_selection import FilePolicy, in_scope, needs_read
from transom.ledger.scope import Scope

NAMES = {"a": 4, "b": 5, "c": 5, "d": 6}
HOURS = {4, 5, 6, 7}
TEXTS = ["", "a", "ab", "abc", "x", "xy", "~", "a~", "abc~", "!"]
"""`~` is where a text breaks off, `!` cannot be read."""
Captures = dict[str, str]


@dataclass(frozen=True)
class Step:
    """A run, with the landing folder at its start."""

    texts: dict[str, str]
    hours: set[int] = field(default_factory=lambda: HOURS)
    shape: str = "shape"
    shift: int = 0
    captures: Captures = field(default_factory=dict)
    keeps_times: bool = False


steps = st.lists(
    st.builds(
        Step,
        st.dictionaries(st.sampled_from(sorted(NAMES)), st.sampled_from(TEXTS), max_size=4),
        st.sets(st.sampled_from(sorted(HOURS)), min_size=1),
        st.sampled_from(["shape", "shape", "other"]),
        st.sampled_from([0, 0, 1]),
        st.sampled_from([{}, {}, {"host": "x"}]),
        st.booleans(),
    ),
    min_size=1,
    max_size=7,
)


def read_of(text: str, hour: int, captures: Captures) -> FileContent:
    whole = text.rstrip("~!")
    result = content(whole, (hour,) if whole else ())
    result = replace(result, source_id=source_id(result.digest, captures))
    if text.endswith("!"):
        return replace(result, source_id="", digest="", failed="cannot be read")
    broken = text.endswith("~")
    return replace(result, lines=1 + broken, rejected=int(broken), lacks="breaks off" if broken else None)


def whole_run(
    known: dict[str, FileRecord], disk: dict[str, tuple[str, int]], step: Step, rules: FilePolicy
) -> tuple[dict[str, FileRecord], Decisions]:
    """Ingest a landing folder of texts."""
    there = {
        path: replace(listed(path, NAMES[path] + step.shift, touched), captures=step.captures)
        for path, (_, touched) in disk.items()
    }
    paths = in_scope(known, there, lambda hour, _: hour in set(map(at, step.hours)))
    to_read = {p for p in paths & there.keys() if needs_read(there[p], known.get(p), rules)}
    read: dict[str, FileContent] = {}
    while True:
        for path in to_read:
            read[path] = read_of(disk[path][0], NAMES[path] + step.shift, step.captures)
        decisions = decide(known, there, read, paths, rules)
        if not decisions.unread:
            return after(known, decisions), decisions
        assert decisions.unread.isdisjoint(read), "a path is asked for twice"
        to_read = set(decisions.unread)


@pytest.mark.parametrize("replacing", [True, False])
@rare_case(6)
@given(history=steps)
def test_rows_and_their_description_agree_for_any_history_of_files(
    history: list[Step], replacing: bool
) -> None:
    known: dict[str, FileRecord] = {}
    rows: dict[str, tuple[datetime, str, int]] = {}
    disk: dict[str, tuple[str, int]] = {}
    times: dict[tuple[str, str], int] = {}
    for moment, step in enumerate([*history, replace(history[-1], hours=HOURS, shape="shape")]):
        # An unchanged file keeps its time; a restored file may have its former time.
        disk = {
            p: disk[p]
            if p in disk and disk[p][0] == text
            else (text, times.get((p, text), moment) if step.keeps_times else moment)
            for p, text in step.texts.items()
        }
        times |= {(p, text): touched for p, (text, touched) in disk.items()}
        rules = replace(RULES, replace_changed=replacing, spec_hash=lambda hour, step=step: step.shape)
        known, decisions = whole_run(known, disk, step, rules)
        for source in decisions.removed:
            rows.pop(source, None)
        for source, path in decisions.added.items():
            result = read_of(disk[path][0], NAMES[path] + step.shift, step.captures)
            assert result.source_id == source
            assert source not in rows, "rows twice"
            rows[source] = at(NAMES[path] + step.shift), step.shape, result.lines
        holders: dict[str, list[FileRecord]] = {}
        for file in known.values():
            if file.source_id is not None:
                holders.setdefault(file.source_id, []).append(file)
        assert rows.keys() == holders.keys()
        for source, files in holders.items():
            described = [file for file in files if file.status != "duplicate"]
            assert len(described) == 1
            assert rows[source] == (described[0].hour, described[0].spec_hash, described[0].lines)
    if replacing:
        fresh, _ = whole_run({}, disk, replace(step, hours=HOURS), rules)
        actual = {path: file for path, file in known.items() if file.status != "missing"}
        standing = {path for path, file in fresh.items() if file.status != "quarantined"}
        assert {path: actual[path] for path in standing} == {path: fresh[path] for path in standing}
        assert actual.keys() == fresh.keys()


Disk = dict[str, tuple[int, str, set[int]]]
"""For each path: the hour in its name, its text, and the other hours in which it has events."""
disks = st.dictionaries(
    st.sampled_from("abcd"),
    st.tuples(st.integers(-3, 12), st.sampled_from(["a", "ab"]), st.sets(st.integers(-3, 12), max_size=2)),
)


def ingest_chunks(
    known: dict[str, FileRecord], requested: set[datetime], disk: Disk, period: Interval, chunk: int
) -> tuple[dict[str, FileRecord], set[datetime]]:
    """Run over an interval in chunks; return the result and the requested hours."""
    for part in period.chunks(chunk * HOUR):
        scope = Scope.of(part, period, 2 * HOUR, requested)
        known = one_chunk(known, requested, disk, scope)
        requested = requested | scope.requested
    return known, requested


def one_chunk(
    known: dict[str, FileRecord], requested: set[datetime], disk: Disk, scope: Scope
) -> dict[str, FileRecord]:
    def looked_at(hour: datetime, status: Status | None) -> bool:
        return scope.lists_files_of(hour, status is not None or hour in requested, status == "waiting")

    rules = replace(RULES, permitted=lambda hour: scope.may_publish(hour, hour in requested))
    there = {path: listed(path, hour, len(text)) for path, (hour, text, _) in disk.items()}
    paths = in_scope(known, there, looked_at)
    read = {
        path: replace(content(text, sorted({hour, *more})), source_id=path + text)
        for path, (hour, text, more) in disk.items()
        if path in paths and needs_read(there[path], known.get(path), rules)
    }
    return after(known, decide(known, there, read, paths, rules))


@rare_case(4)
@given(disks, disks, st.integers(0, 4), st.integers(1, 8), st.integers(1, 4))
def test_run_in_chunks_gives_the_files_of_one_run(
    earlier: Disk, disk: Disk, start: int, hours: int, chunk: int
) -> None:
    known, requested = ingest_chunks({}, set(), earlier, Interval(at(0), at(2)), 2)
    period = Interval(at(start), at(start + hours))
    chunked, whole = (ingest_chunks(known, requested, disk, period, size) for size in (chunk, hours))
    assert chunked == whole
    standing = [path for path, (hour, _, more) in disk.items() if all(at(n) in period for n in {hour, *more})]
    if not known:
        assert all(chunked[0][path].status == "ingested" for path in standing)


def test_file_with_hours_of_two_chunks_is_read() -> None:
    early, late = {"f": (4, "a", {4})}, {"f": (4, "ab", {5})}
    for before in ({}, early):
        known, requested = ingest_chunks({}, set(), before, Interval(at(4), at(5)), 1)
        known, _ = ingest_chunks(known, requested, late, Interval(at(0), at(10)), 5)
        assert (known["f"].status, known["f"].hours) == ("ingested", (at(4), at(5)))
