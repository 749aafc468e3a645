"""What becomes of a file: new, grown, changed, gone, duplicated, too far, withheld."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transom.intervals import NO_HOUR, Interval
from transom.lake.book import Book, Entry
from transom.lake.staleness import Scope
from transom.lake.store import Pins, Store
from transom.stages.decisions import Decisions, decide
from transom.stages.files import (
    Content,
    File,
    Listed,
    Rules,
    Status,
    has_to_be_read,
    in_scope,
    source_id,
    with_duplicates,
)
from transom.stages.hours import HourState, hour_states
from transom.stages.scene import Scene, node_of

HOUR = timedelta(hours=1)
DAY = datetime(2015, 5, 17, tzinfo=UTC)
RULES = Rules(lambda hour: "shape", False, lambda hour: True)


def at(number: int) -> datetime:
    return DAY + number * HOUR


def listed(path: str, hour: int | None = 0, touched: int = 1) -> Listed:
    moment = None if hour is None else at(hour)
    return Listed(path, 10, at(touched), {}, moment, moment, moment + HOUR if moment else None)


def content(text: str, hours: Iterable[int] = (0,), failed: str | None = None) -> Content:
    data = text.encode()
    digest = hashlib.sha256(data).hexdigest()
    prefixes = {n: hashlib.sha256(data[:n]).hexdigest() for n in range(len(data) + 1)}
    moments = tuple(map(at, hours))
    return Content(
        source_id(digest, {}), digest, len(data), 1, 0, 1, 0, None, None, (), moments, prefixes, None, failed
    )


def run(known: dict[str, File], seen: dict[str, tuple[Listed, Content]], rules: Rules = RULES) -> Decisions:
    there = {path: one for path, (one, _) in seen.items()}
    read = {path: what for path, (_, what) in seen.items()}
    return decide(known, there, read, there.keys() | known.keys(), rules)


def after(known: dict[str, File], decisions: Decisions) -> dict[str, File]:
    files = {**known, **decisions.files}
    return {path: file for path, file in files.items() if path not in decisions.forgotten}


def one(text: str = "ab", path: str = "f", **more: Iterable[int]) -> dict[str, File]:
    return after({}, run({}, {path: (listed(path), content(text, **more))}))


def test_a_new_file_is_taken() -> None:
    decisions = run({}, {"f": (listed("f"), content("ab"))})
    assert decisions.files["f"].status == "ingested"
    assert list(decisions.added.values()) == ["f"]
    assert not decisions.removed


def test_a_file_that_is_as_it_was_changes_nothing() -> None:
    known = one()
    assert not has_to_be_read(listed("f"), known["f"], RULES)
    decisions = run(known, {"f": (listed("f"), content("ab"))})
    assert (decisions.files, decisions.added, decisions.removed) == ({}, {}, {})


def test_a_grown_file_replaces_the_old_one() -> None:
    known = one("ab")
    decisions = run(known, {"f": (listed("f", touched=2), content("abc"))})
    assert decisions.files["f"].status == "ingested"
    assert set(decisions.removed) == {content("ab").source_id}
    assert set(decisions.added) == {content("abc").source_id}


def test_a_changed_file_is_held_back_until_the_stream_says_otherwise() -> None:
    known = one("ab")
    changed = {"f": (listed("f", touched=2), content("xy"))}
    held = run(known, changed)
    assert held.files["f"].status == "conflict"
    assert held.files["f"].source_id == content("ab").source_id
    assert not held.added
    assert not has_to_be_read(listed("f", touched=2), held.files["f"], RULES)
    replacing = replace(RULES, replace_changed=True)
    assert has_to_be_read(listed("f", touched=2), held.files["f"], replacing)
    taken = run(after(known, held), changed, replacing)
    assert taken.files["f"].source_id == content("xy").source_id
    back = run(after(known, held), {"f": (listed("f", touched=3), content("ab"))})
    assert (back.files["f"].status, back.added) == ("ingested", {})


def test_a_name_that_is_gone_keeps_its_rows() -> None:
    known = one()
    decisions = run(known, {})
    assert decisions.files["f"].status == "gone"
    assert not decisions.removed


def test_equal_files_are_one_whose_name_is_the_smallest_path() -> None:
    known = one("ab", "m")
    larger = run(known, {"m": (listed("m"), content("ab")), "z": (listed("z"), content("ab"))})
    assert (larger.files["z"].status, larger.added) == ("duplicate", {})
    smaller = run(known, {"m": (listed("m"), content("ab")), "a": (listed("a"), content("ab"))})
    assert {path: file.status for path, file in smaller.files.items()} == {"a": "ingested", "m": "duplicate"}
    assert (smaller.added, smaller.removed) == ({}, {})


def test_a_smaller_name_of_another_hour_brings_its_own_rows() -> None:
    known = after({}, run({}, {"m": (listed("m", 5), content("ab", (5,)))}))
    decisions = run(
        known, {"a": (listed("a", 4), content("ab", (5,))), "m": (listed("m", 5), content("ab", (5,)))}
    )
    assert decisions.added == {content("ab").source_id: "a"}
    assert set(decisions.removed) == {content("ab").source_id}


def test_the_rest_of_a_duplicate_is_read_when_the_canonical_file_changes() -> None:
    both = {"a": (listed("a", 4), content("ab", (5,))), "m": (listed("m", 5), content("ab", (5,)))}
    known = after({}, run({}, both))
    there = {"a": listed("a", 4, 2), "m": listed("m", 5)}
    decisions = decide(known, there, {"a": content("abc", (5,))}, there.keys(), RULES)
    assert decisions.unread == {"m"}


def test_a_file_that_touches_more_than_the_run_may_publish_waits() -> None:
    near = replace(RULES, permitted=lambda hour: hour >= at(3))
    decisions = run({}, {"f": (listed("f", 4), content("ab", (2, 4)))}, near)
    assert decisions.files["f"].status == "waiting"
    assert "2015-05-17T02:00 to 2015-05-17T04:00" in str(decisions.files["f"].detail)
    assert not decisions.added
    assert not has_to_be_read(listed("f", 4), decisions.files["f"], near)
    assert has_to_be_read(listed("f", 4), decisions.files["f"], RULES)
    assert run(dict(decisions.files), {}).forgotten == {"f"}


def test_a_file_that_fails_a_check_is_withheld_and_what_stood_stays() -> None:
    known = one("ab")
    decisions = run(known, {"f": (listed("f", touched=2), content("abc", failed="rejected_share"))})
    assert decisions.files["f"].status == "withheld"
    assert decisions.files["f"].source_id == content("ab").source_id
    assert (decisions.added, decisions.removed) == ({}, {})
    (state,) = hour_states(decisions.files.values(), [at(0)], RULES.shape).values()
    assert state.withheld == ("f: rejected_share",)


def test_another_specification_reads_every_file_again() -> None:
    known = one("ab")
    other = replace(RULES, shape=lambda hour: "other")
    assert has_to_be_read(listed("f"), known["f"], other)
    decisions = run(known, {"f": (listed("f"), content("ab"))}, other)
    assert set(decisions.added) == set(decisions.removed) == {content("ab").source_id}


@pytest.mark.parametrize("text", ["ab", ""])
def test_a_name_that_says_something_else_is_no_conflict(text: str) -> None:
    known = one(text)
    assert not has_to_be_read(listed("f"), known["f"], RULES)
    for there in (replace(listed("f"), captures={"host": "a"}), listed("f", 1)):
        assert has_to_be_read(there, known["f"], RULES)
        found = content(text)
        found = replace(found, source_id=source_id(found.digest, there.captures), prefixes={})
        taken = run(known, {"f": (there, found)}).files["f"]
        assert (taken.status, taken.source_id, taken.hour) == ("ingested", found.source_id, there.hour)
        assert not has_to_be_read(there, taken, RULES)


def test_hours_of_names_that_say_something_else_are_stale() -> None:
    interval = Interval(at(9), at(10))
    scope = Scope.of(interval, interval, HOUR, ())
    pins = Pins(Store(None, ""), {})  # type: ignore[arg-type]
    for there, stale in ((listed("f"), []), (listed("f", 1), [at(0)])):
        scene = Scene(Book({}), pins, scope, one("ab"), {"f": there}, RULES, lambda _: {})
        assert scene.stale() == stale


def test_captures_tell_equal_files_apart() -> None:
    assert source_id("d", {"host": "a"}) != source_id("d", {"host": "b"})


def test_the_start_of_times_that_count_from_a_name_tells_equal_files_apart() -> None:
    ids = {source_id("d", {}, origin) for origin in (None, at(0), at(1), at(0) + HOUR / 2)}
    assert len(ids) == 4
    counted = replace(listed("f"), origin=at(0))
    found = content("ab")
    found = replace(found, source_id=source_id(found.digest, {}, at(0)))
    known = after({}, run({}, {"f": (counted, found)}))
    assert not has_to_be_read(counted, known["f"], RULES)
    # The pattern has changed: the same name says another minute of the hour.
    assert has_to_be_read(replace(counted, origin=at(0) + HOUR / 2), known["f"], RULES)


def state(files: dict[str, File], hour: int = 0, rules: Rules = RULES) -> HourState:
    return hour_states(files.values(), [at(hour)], rules.shape)[at(hour)]


def test_what_a_content_lacks_is_lacking_as_long_as_it_stands() -> None:
    cut = replace(content("ab"), lacks="file_readable: the stream ends inside a gzip member")
    known = after({}, run({}, {"f": (listed("f"), cut)}))
    missing = ("f: file_readable: the stream ends inside a gzip member",)
    assert state(known).missing == missing
    gone = after(known, run(known, {}))
    assert (gone["f"].status, state(gone).missing) == ("gone", missing)
    conflict = after(known, run(known, {"f": (listed("f", touched=2), content("xy"))}))
    assert (conflict["f"].status, state(conflict).missing) == ("conflict", missing)
    assert state(conflict).conflicts == (f"f: {conflict['f'].detail}",)
    # Files of nothing at all are one content, and each is missing in its own hour.
    twice = after(known, run(known, {"f": (listed("f"), cut), "g": (listed("g", 1), cut)}))
    assert (twice["g"].status, state(twice, 1).missing[0]) == ("duplicate", missing[0].replace("f", "g", 1))
    whole = after(known, run(known, {"f": (listed("f", touched=2), content("abc"))}))
    assert state(whole).missing == ()


def test_what_is_held_back_is_missing_in_all_its_hours_whatever_stands() -> None:
    near = replace(RULES, permitted=lambda hour: hour == at(0))
    for rules, failed in ((RULES, "rejected_share"), (near, None)):
        grown = {"f": (listed("f", touched=2), content("abc", (0, 1), failed))}
        fresh = after({}, run({}, grown, rules))
        held = after(one("ab"), run(one("ab"), grown, rules))
        assert held["f"].source_id == content("ab").source_id
        assert state(held, 1).missing == state(fresh, 1).missing != ()
        back = after(held, run(held, {"f": (listed("f", touched=3), content("ab"))}, rules))
        assert back["f"].status == "ingested"
        assert state(back, 1).missing == ()
        assert state(after(held, run(held, {})), 1).missing == ()
    conflict = after(one("ab"), run(one("ab"), {"f": (listed("f", touched=2), content("xy", (0, 1)))}))
    assert conflict["f"].touched == {at(0)}


def test_a_file_that_was_nowhere_waits_for_the_hours_that_it_has_now() -> None:
    empty = after({}, run({}, {"f": (listed("f", None), content("", ()))}))
    far = replace(RULES, permitted=lambda hour: hour == NO_HOUR)
    waiting = run(empty, {"f": (listed("f", None, 2), content("a", (1,)))}, far).files["f"]
    assert (waiting.status, "2015-05-17T01:00 to 2015-05-17T01:00" in str(waiting.detail)) == (
        "waiting",
        True,
    )


def test_a_duplicate_that_becomes_the_canonical_file_lacks_nothing() -> None:
    both = {"a": (listed("a"), content("ab")), "z": (listed("z"), content("ab"))}
    known = after({}, run({}, both))
    grown = after(known, run(known, both | {"a": (listed("a", touched=2), content("abc"))}))
    assert (grown["z"].status, grown["z"].detail) == ("ingested", None)
    assert state(grown).missing == ()


def test_a_duplicate_that_is_gone_leaves_nothing_behind() -> None:
    both = {"a": (listed("a", 4), content("ab")), "m": (listed("m", 5), content("ab"))}
    known = after({}, run({}, both))
    alone = {"a": both["a"]}
    known = after(known, run(known, alone))
    assert known.keys() == {"a"}
    decisions = run(known, {"a": (listed("a", 4, touched=2), content("abc"))})
    assert set(decisions.removed) == {content("ab").source_id}
    assert decisions.added == {content("abc").source_id: "a"}


def test_a_canonical_file_that_is_gone_leaves_its_rows_to_a_duplicate() -> None:
    both = {"a": (listed("a", 4), content("ab")), "m": (listed("m", 5), content("ab"))}
    known = after({}, run({}, both))
    decisions = run(known, {"m": both["m"]})
    assert decisions.forgotten == {"a"}
    assert decisions.added == {content("ab").source_id: "m"}


def test_a_file_that_cannot_be_read_is_read_again_and_no_conflict() -> None:
    known = one("ab")
    unreadable = replace(
        content("", ()), source_id="", digest="", failed="cannot be read: Input/output error"
    )
    there = listed("f", touched=2)
    held = after(known, run(known, {"f": (there, unreadable)}))
    assert (held["f"].status, held["f"].source_id) == ("withheld", content("ab").source_id)
    assert state(held).withheld == ("f: cannot be read: Input/output error",)
    assert has_to_be_read(there, held["f"], RULES)
    mended = after(held, run(held, {"f": (there, content("abc"))}))
    assert (mended["f"].status, mended["f"].source_id) == ("ingested", content("abc").source_id)


def test_duplicates_are_counted_by_content_whatever_the_names() -> None:
    (file,) = one("abc").values()
    held = replace(file, accepted=5, duplicates=3, lines=8)
    known = {"f": held, "again": replace(held, path="again", status="duplicate")}
    # Read again, for a file that has come beside them: nothing is known of its duplicates yet.
    afresh = {path: replace(file, accepted=8, duplicates=0) for path, file in known.items()}
    other = replace(held, path="other", source_id="other", accepted=4, duplicates=0, lines=4)
    held_back = replace(other, path="back", source_id=None)
    files = {**afresh, "other": other, "back": held_back}
    assert held.source_id is not None
    assert with_duplicates(files, known, (), {}) == {**known, "other": other, "back": held_back}
    moved = with_duplicates(files, known, (), {held.source_id: -2, "other": 2})
    assert {path: (file.accepted, file.duplicates) for path, file in moved.items()} == {
        "f": (7, 1), "again": (7, 1), "other": (2, 2), "back": (4, 0),
    }  # fmt: skip
    # Rows that enter anew are all counted anew.
    anew = with_duplicates(files, known, {held.source_id}, {held.source_id: 4})
    assert (anew["f"].accepted, anew["again"].duplicates, anew["other"]) == (4, 4, other)


def test_rows_of_another_specification_that_cannot_be_read_again_are_told() -> None:
    known = one("ab")
    gone = after(known, run(known, {}))
    other = replace(RULES, shape=lambda hour: "other")
    assert state(gone).missing == ()
    assert state(gone, rules=other).missing == ("f: its rows were read under another specification",)
    assert not state(gone, rules=other).mixed


def test_rows_of_another_specification_that_can_be_read_again_make_their_hours_mixed() -> None:
    known = after({}, run({}, {"f": (listed("f", 5), content("ab", (3, 5)))}))
    other = replace(RULES, shape=lambda hour: "other")
    for rules, mixed in ((RULES, False), (other, True)):
        states = hour_states(known.values(), [at(3), at(4), at(5)], rules.shape, {"f"})
        assert [states[at(number)].mixed for number in (3, 4, 5)] == [mixed, False, mixed]
        words = "its rows were read under another specification"
        again = f"f: {words}; run 2015-05-17T03:00 to 2015-05-17T05:00 to read it again"
        assert states[at(3)].missing == ((again,) if mixed else ())
    # What is held back has its own say, and a second name has no rows.
    for status in ("conflict", "withheld", "waiting", "duplicate"):
        held = [replace(known["f"], status=status, detail="")]
        assert not hour_states(held, [at(3)], other.shape, {"f"})[at(3)].mixed


def test_what_an_hour_is_made_of_is_said_only_where_it_is_known() -> None:
    chunk, stretch = Interval(at(10), at(12)), Interval(at(8), at(14))
    scope = Scope.of(chunk, stretch, HOUR, ())
    pins = Pins(Store(None, ""), {})  # type: ignore[arg-type]
    made = {n: {"specification": "now" if n % 2 else "then"} for n in range(5, 16)}
    book = Book({node_of("events", at(n)): Entry("published", "a", inputs=made[n]) for n in made})
    scene = Scene(book, pins, scope, {}, {}, RULES, lambda _: {"specification": "now"})
    # Earlier chunks have seen to 7 to 9, this one sees to 10 and 11; 6 is too far, 12 a later chunk's.
    unknown = {n for n in made if scene.inputs(at(n), mixed=False) is None}
    assert unknown == {6, 12, 14}
    assert {n for n in made if scene.inputs(at(n), mixed=True) is None} == made.keys()
    assert scene.inputs(at(20), mixed=False) == scene.inputs(at(7), mixed=False) == {"specification": "now"}


NAMES = {"a": 4, "b": 5, "c": 5, "d": 6}
HOURS = {4, 5, 6, 7}
TEXTS = ["", "a", "ab", "abc", "x", "xy", "~", "a~", "abc~", "!"]
"""`~` is where a text breaks off, `!` cannot be read."""
Captures = dict[str, str]


@dataclass(frozen=True)
class Step:
    """A run, and the landing folder that it finds."""

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


def read_of(text: str, hour: int, captures: Captures) -> Content:
    whole = text.rstrip("~!")
    found = content(whole, (hour,) if whole else ())
    found = replace(found, source_id=source_id(found.digest, captures))
    if text.endswith("!"):
        return replace(found, source_id="", digest="", failed="cannot be read")
    broken = text.endswith("~")
    return replace(found, lines=1 + broken, rejected=int(broken), lacks="breaks off" if broken else None)


def whole_run(
    known: dict[str, File], disk: dict[str, tuple[str, int]], step: Step, rules: Rules
) -> tuple[dict[str, File], Decisions]:
    """What ingest does with a landing folder of texts."""
    there = {
        path: replace(listed(path, NAMES[path] + step.shift, touched), captures=step.captures)
        for path, (_, touched) in disk.items()
    }
    paths = in_scope(known, there, lambda hour, _: hour in set(map(at, step.hours)))
    to_read = {p for p in paths & there.keys() if has_to_be_read(there[p], known.get(p), rules)}
    read: dict[str, Content] = {}
    while True:
        for path in to_read:
            read[path] = read_of(disk[path][0], NAMES[path] + step.shift, step.captures)
        decisions = decide(known, there, read, paths, rules)
        if not decisions.unread:
            return after(known, decisions), decisions
        assert decisions.unread.isdisjoint(read), "a path is asked for twice"
        to_read = set(decisions.unread)


@pytest.mark.parametrize("replacing", [True, False])
@settings(max_examples=600)
@given(history=steps)
def test_any_history_of_files_keeps_rows_and_their_description_together(
    history: list[Step], replacing: bool
) -> None:
    known: dict[str, File] = {}
    rows: dict[str, tuple[datetime, str, int]] = {}
    disk: dict[str, tuple[str, int]] = {}
    times: dict[tuple[str, str], int] = {}
    for moment, step in enumerate([*history, replace(history[-1], hours=HOURS, shape="shape")]):
        # A file that is as it was keeps its time; one that comes back may have the time that it had.
        disk = {
            p: disk[p]
            if p in disk and disk[p][0] == text
            else (text, times.get((p, text), moment) if step.keeps_times else moment)
            for p, text in step.texts.items()
        }
        times |= {(p, text): touched for p, (text, touched) in disk.items()}
        rules = replace(RULES, replace_changed=replacing, shape=lambda hour, step=step: step.shape)
        known, decisions = whole_run(known, disk, step, rules)
        for source in decisions.removed:
            rows.pop(source, None)
        for source, path in decisions.added.items():
            found = read_of(disk[path][0], NAMES[path] + step.shift, step.captures)
            assert found.source_id == source
            assert source not in rows, "rows twice"
            rows[source] = at(NAMES[path] + step.shift), step.shape, found.lines
        holders: dict[str, list[File]] = {}
        for file in known.values():
            if file.source_id is not None:
                holders.setdefault(file.source_id, []).append(file)
        assert rows.keys() == holders.keys()
        for source, files in holders.items():
            described = [file for file in files if file.status != "duplicate"]
            assert len(described) == 1
            assert rows[source] == (described[0].hour, described[0].shape, described[0].lines)
    if replacing:
        fresh, _ = whole_run({}, disk, replace(step, hours=HOURS), rules)
        lived = {path: file for path, file in known.items() if file.status != "gone"}
        standing = {path for path, file in fresh.items() if file.status != "withheld"}
        assert {path: lived[path] for path in standing} == {path: fresh[path] for path in standing}
        assert lived.keys() == fresh.keys()


Disk = dict[str, tuple[int, str, set[int]]]
"""Of each path: the hour in its name, its text, and the hours that its events lie in beside that one."""
disks = st.dictionaries(
    st.sampled_from("abcd"),
    st.tuples(st.integers(-3, 12), st.sampled_from(["a", "ab"]), st.sets(st.integers(-3, 12), max_size=2)),
)


def ingested(
    known: dict[str, File], asked: set[datetime], disk: Disk, stretch: Interval, chunk: int
) -> tuple[dict[str, File], set[datetime]]:
    """A run over a stretch in chunks, and the hours that somebody has asked for after it."""
    for part in stretch.chunks(chunk * HOUR):
        scope = Scope.of(part, stretch, 2 * HOUR, asked)
        known = one_chunk(known, asked, disk, scope)
        asked = asked | scope.asked
    return known, asked


def one_chunk(known: dict[str, File], asked: set[datetime], disk: Disk, scope: Scope) -> dict[str, File]:
    def looked_at(hour: datetime, status: Status | None) -> bool:
        return scope.looks_at(hour, status is not None or hour in asked, status == "waiting")

    rules = replace(RULES, permitted=lambda hour: scope.may_publish(hour, hour in asked))
    there = {path: listed(path, hour, len(text)) for path, (hour, text, _) in disk.items()}
    paths = in_scope(known, there, looked_at)
    read = {
        path: replace(content(text, sorted({hour, *more})), source_id=path + text)
        for path, (hour, text, more) in disk.items()
        if path in paths and has_to_be_read(there[path], known.get(path), rules)
    }
    return after(known, decide(known, there, read, paths, rules))


@settings(max_examples=400)
@given(disks, disks, st.integers(0, 4), st.integers(1, 8), st.integers(1, 4))
def test_chunks_leave_no_trace_among_files(
    earlier: Disk, disk: Disk, start: int, hours: int, chunk: int
) -> None:
    known, asked = ingested({}, set(), earlier, Interval(at(0), at(2)), 2)
    stretch = Interval(at(start), at(start + hours))
    chunked, whole = (ingested(known, asked, disk, stretch, size) for size in (chunk, hours))
    assert chunked == whole
    standing = [
        path for path, (hour, _, more) in disk.items() if all(at(n) in stretch for n in {hour, *more})
    ]
    if not known:
        assert all(chunked[0][path].status == "ingested" for path in standing)


def test_a_file_that_crosses_from_one_chunk_into_the_next_is_taken() -> None:
    early, late = {"f": (4, "a", {4})}, {"f": (4, "ab", {5})}
    for before in ({}, early):
        known, asked = ingested({}, set(), before, Interval(at(4), at(5)), 1)
        known, _ = ingested(known, asked, late, Interval(at(0), at(10)), 5)
        assert (known["f"].status, known["f"].hours) == ("ingested", (at(4), at(5)))
