"""The decision on a file: new, grown, changed, removed, duplicate, too far, quarantined."""

from dataclasses import replace

import pytest

from tests.support.file_factories import HOUR, RULES, after, at, content, listed, missing, one, run, state
from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.features.ingest.file_decisions import decide
from transom.features.ingest.file_records import source_id, with_duplicates
from transom.features.ingest.file_selection import needs_read
from transom.features.ingest.hour_states import hour_states
from transom.features.ingest.snapshot import IngestSnapshot
from transom.ledger.scope import Scope
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.store import PinnedTables, Store


def test_new_file_is_read() -> None:
    decisions = run({}, {"f": (listed("f"), content("ab"))})
    assert decisions.files["f"].status == "ingested"
    assert list(decisions.added.values()) == ["f"]
    assert not decisions.removed


def test_unchanged_file_changes_nothing() -> None:
    known = one()
    assert not needs_read(listed("f"), known["f"], RULES)
    decisions = run(known, {"f": (listed("f"), content("ab"))})
    assert (decisions.files, decisions.added, decisions.removed) == ({}, {}, {})


def test_grown_file_replaces_the_old_one() -> None:
    known = one("ab")
    decisions = run(known, {"f": (listed("f", touched=2), content("abc"))})
    assert decisions.files["f"].status == "ingested"
    assert set(decisions.removed) == {content("ab").source_id}
    assert set(decisions.added) == {content("abc").source_id}


def test_changed_file_is_a_conflict_until_the_stream_accepts_it() -> None:
    known = one("ab")
    changed = {"f": (listed("f", touched=2), content("xy"))}
    stored = run(known, changed)
    assert stored.files["f"].status == "conflict"
    assert (stored.files["f"].source_id, stored.files["f"].last_read_source_id) == (
        content("ab").source_id, content("xy").source_id
    )  # fmt: skip
    assert not stored.added
    assert not needs_read(listed("f", touched=2), stored.files["f"], RULES)
    replacing = replace(RULES, replace_changed=True)
    assert needs_read(listed("f", touched=2), stored.files["f"], replacing)
    selected = run(after(known, stored), changed, replacing)
    assert selected.files["f"].source_id == content("xy").source_id
    back = run(after(known, stored), {"f": (listed("f", touched=3), content("ab"))})
    assert (back.files["f"].status, back.added) == ("ingested", {})


def test_conflicting_file_is_recognised_by_its_own_size() -> None:
    longer = replace(listed("f", touched=2), size=11)
    stored = run(one("ab"), {"f": (longer, content("xyz"))}).files["f"]
    assert (stored.status, needs_read(longer, stored, RULES)) == ("conflict", False)


def test_file_without_published_rows_may_change() -> None:
    far = replace(RULES, permitted=lambda hour: False)
    known = after({}, run({}, {"f": (listed("f"), content("ab"))}, far))
    assert known["f"].status == "waiting"
    assert run(known, {"f": (listed("f", touched=2), content("xy"))}).files["f"].status == "ingested"


def test_file_without_a_time_in_its_name_belongs_to_the_hour_of_its_first_event() -> None:
    known = after({}, run({}, {"f": (listed("f", None), content("ab", (3, 4)))}))
    assert (known["f"].hour, known["f"].touched) == (at(3), {at(3), at(4)})


def test_all_but_one_of_equal_files_are_duplicates_until_they_differ() -> None:
    there = {name: listed(name) for name in "abc"}
    known = after({}, run({}, {name: (one, content("ab")) for name, one in there.items()}))
    assert {name: (file.status, file.status_reason) for name, file in known.items()} == {
        "a": ("ingested", None), "b": ("duplicate", "the same as a"), "c": ("duplicate", "the same as a")
    }  # fmt: skip
    # The others are not read for that: their rows are published.
    grown = decide(known, there, {"a": content("abc")}, {"a"}, RULES)
    assert (grown.added, grown.removed, grown.unread) == ({content("abc").source_id: "a"}, {}, set())
    assert {name: (file.status, file.status_reason) for name, file in after(known, grown).items()} == {
        "a": ("ingested", None), "b": ("ingested", None), "c": ("duplicate", "the same as b")
    }  # fmt: skip


def test_removed_file_keeps_its_rows() -> None:
    known = one()
    decisions = run(known, {})
    assert decisions.files["f"].status == "missing"
    assert not decisions.removed


def test_canonical_file_of_equal_ones_has_the_smallest_path() -> None:
    known = one("ab", "m")
    larger = run(known, {"m": (listed("m"), content("ab")), "z": (listed("z"), content("ab"))})
    assert (larger.files["z"].status, larger.added) == ("duplicate", {})
    smaller = run(known, {"m": (listed("m"), content("ab")), "a": (listed("a"), content("ab"))})
    assert {path: file.status for path, file in smaller.files.items()} == {"a": "ingested", "m": "duplicate"}
    assert (smaller.added, smaller.removed) == ({}, {})


def test_equal_file_with_a_smaller_name_of_another_hour_has_its_own_rows() -> None:
    known = after({}, run({}, {"m": (listed("m", 5), content("ab", (5,)))}))
    decisions = run(
        known, {"a": (listed("a", 4), content("ab", (5,))), "m": (listed("m", 5), content("ab", (5,)))}
    )
    assert decisions.added == {content("ab").source_id: "a"}
    assert set(decisions.removed) == {content("ab").source_id}


def test_file_whose_rows_belong_to_another_one_is_examined_again() -> None:
    known = one("ab")
    there = {"f": listed("f", touched=2), "g": listed("g")}
    stored = after(known, decide(known, there, {"f": content("xy")}, {"f"}, RULES))
    assert stored["f"].status == "conflict"
    first = decide(stored, there, {"g": content("ab")}, {"g"}, RULES)
    assert first.unread == {"f"}
    both = decide(stored, there, {"g": content("ab"), "f": content("xy")}, {"g"}, RULES)
    assert {path: (file.status, file.source_id) for path, file in both.files.items()} == {
        "f": ("ingested", content("xy").source_id), "g": ("ingested", content("ab").source_id)
    }  # fmt: skip
    assert both.unread == set()


def test_duplicate_is_read_when_the_canonical_file_changes() -> None:
    both = {"a": (listed("a", 4), content("ab", (5,))), "m": (listed("m", 5), content("ab", (5,)))}
    known = after({}, run({}, both))
    there = {"a": listed("a", 4, 2), "m": listed("m", 5)}
    decisions = decide(known, there, {"a": content("abc", (5,))}, there.keys(), RULES)
    assert decisions.unread == {"m"}


def test_file_with_hours_that_the_run_may_not_publish_waits() -> None:
    near = replace(RULES, permitted=lambda hour: hour >= at(3))
    decisions = run({}, {"f": (listed("f", 4), content("ab", (2, 4)))}, near)
    assert decisions.files["f"].status == "waiting"
    assert "2015-05-17T02:00 to 2015-05-17T05:00" in str(decisions.files["f"].status_reason)
    assert not decisions.added
    assert not needs_read(listed("f", 4), decisions.files["f"], near)
    assert needs_read(listed("f", 4), decisions.files["f"], RULES)
    assert run(dict(decisions.files), {}).dropped == {"f"}


def test_file_waits_for_hours_that_its_rows_would_leave() -> None:
    near = replace(RULES, permitted=lambda hour: hour >= at(3))
    known = one("ab", hours=(2, 4))
    grown = run(known, {"f": (listed("f", 4, 2), content("abc", (4,)))}, near)
    assert grown.files["f"].status == "waiting"
    assert (grown.added, grown.removed) == ({}, {})


def test_file_that_fails_a_check_is_quarantined_and_published_rows_stay() -> None:
    known = one("ab")
    decisions = run(known, {"f": (listed("f", touched=2), content("abc", failed="rejected_share"))})
    assert decisions.files["f"].status == "quarantined"
    assert decisions.files["f"].source_id == content("ab").source_id
    assert (decisions.added, decisions.removed) == ({}, {})
    (state,) = hour_states(decisions.files.values(), [at(0)], RULES.spec_hash).values()
    assert [cause.text for cause in state.wrong] == ["f: rejected_share"]


def test_changed_specification_reads_every_file_again() -> None:
    known = one("ab")
    other = replace(RULES, spec_hash=lambda hour: "other")
    assert needs_read(listed("f"), known["f"], other)
    decisions = run(known, {"f": (listed("f"), content("ab"))}, other)
    assert set(decisions.added) == set(decisions.removed) == {content("ab").source_id}


@pytest.mark.parametrize("text", ["ab", ""])
def test_changed_meaning_of_a_name_is_no_conflict(text: str) -> None:
    known = one(text)
    assert not needs_read(listed("f"), known["f"], RULES)
    for there in (replace(listed("f"), captures={"host": "a"}), listed("f", 1)):
        assert needs_read(there, known["f"], RULES)
        result = content(text)
        result = replace(result, source_id=source_id(result.digest, there.captures), prefixes={})
        selected = run(known, {"f": (there, result)}).files["f"]
        assert (selected.status, selected.source_id, selected.hour) == (
            "ingested",
            result.source_id,
            there.hour,
        )
        assert not needs_read(there, selected, RULES)


def test_hours_of_names_with_changed_meaning_are_stale() -> None:
    interval = Interval(at(9), at(10))
    scope = Scope.of(interval, interval, HOUR, ())
    pins = PinnedTables(Store(None, ""), {})
    for there, stale in ((listed("f"), []), (listed("f", 1), [at(0)])):
        scene = IngestSnapshot(LedgerSnapshot({}), pins, scope, one("ab"), {"f": there}, RULES, lambda _: {})
        assert scene.stale() == stale


def test_captures_distinguish_equal_files() -> None:
    assert source_id("d", {"host": "a"}) != source_id("d", {"host": "b"})


def test_start_time_in_a_name_distinguishes_equal_files_of_relative_times() -> None:
    ids = {source_id("d", {}, origin) for origin in (None, at(0), at(1), at(0) + HOUR / 2)}
    assert len(ids) == 4
    counted = replace(listed("f"), origin=at(0))
    result = content("ab")
    result = replace(result, source_id=source_id(result.digest, {}, at(0)))
    known = after({}, run({}, {"f": (counted, result)}))
    assert not needs_read(counted, known["f"], RULES)
    # The pattern has changed: the same name has another minute of the hour.
    assert needs_read(replace(counted, origin=at(0) + HOUR / 2), known["f"], RULES)


def test_incompleteness_of_a_content_lasts_as_long_as_it_is_published() -> None:
    cut = replace(content("ab"), lacks="file_readable: the stream ends inside a gzip member")
    known = after({}, run({}, {"f": (listed("f"), cut)}))
    expected = ("f: file_readable: the stream ends inside a gzip member",)
    assert missing(known) == expected
    removed = after(known, run(known, {}))
    assert (removed["f"].status, missing(removed)) == ("missing", expected)
    conflict = after(known, run(known, {"f": (listed("f", touched=2), content("xy"))}))
    assert (conflict["f"].status, missing(conflict)) == ("conflict", expected)
    assert state(conflict).at_fault["files_unchanged"] == [f"f: {conflict['f'].status_reason}"]
    # Empty files are one content, and each is missing in its own hour.
    twice = after(known, run(known, {"f": (listed("f"), cut), "g": (listed("g", 1), cut)}))
    assert (twice["g"].status, missing(twice, 1)[0]) == ("duplicate", expected[0].replace("f", "g", 1))
    whole = after(known, run(known, {"f": (listed("f", touched=2), content("abc"))}))
    assert missing(whole) == ()


def test_conflicting_file_is_missing_in_all_its_hours() -> None:
    near = replace(RULES, permitted=lambda hour: hour == at(0))
    for rules, failed in ((RULES, "rejected_share"), (near, None)):
        grown = {"f": (listed("f", touched=2), content("abc", (0, 1), failed))}
        fresh = after({}, run({}, grown, rules))
        stored = after(one("ab"), run(one("ab"), grown, rules))
        assert stored["f"].source_id == content("ab").source_id
        texts = "f: quarantined, see the finding of 2015-05-17T00:00"
        if rules is near:
            texts = (
                "f: its events lie in 2015-05-17T00:00 to 2015-05-17T02:00; a run of that interval takes it"
            )
        assert missing(stored, 1) == missing(fresh, 1) == (texts,)
        back = after(stored, run(stored, {"f": (listed("f", touched=3), content("ab"))}, rules))
        assert back["f"].status == "ingested"
        assert missing(back, 1) == ()
        removed = after(stored, run(stored, {}))
        assert (missing(removed, 1), removed["f"].touched) == ((), {at(0)})
    conflict = after(one("ab"), run(one("ab"), {"f": (listed("f", touched=2), content("xy", (0, 1)))}))
    assert conflict["f"].touched == {at(0)}


def test_file_that_had_no_hours_waits_for_its_new_ones() -> None:
    empty = after({}, run({}, {"f": (listed("f", None), content("", ()))}))
    far = replace(RULES, permitted=lambda hour: hour == UNKNOWN_HOUR)
    waiting = run(empty, {"f": (listed("f", None, 2), content("a", (1,)))}, far).files["f"]
    assert (waiting.status, "2015-05-17T01:00 to 2015-05-17T02:00" in str(waiting.status_reason)) == (
        "waiting",
        True,
    )


def test_duplicate_that_becomes_canonical_is_complete() -> None:
    both = {"a": (listed("a"), content("ab")), "z": (listed("z"), content("ab"))}
    known = after({}, run({}, both))
    grown = after(known, run(known, both | {"a": (listed("a", touched=2), content("abc"))}))
    assert (grown["z"].status, grown["z"].status_reason) == ("ingested", None)
    assert missing(grown) == ()


def test_removed_duplicate_leaves_no_trace() -> None:
    both = {"a": (listed("a", 4), content("ab")), "m": (listed("m", 5), content("ab"))}
    known = after({}, run({}, both))
    alone = {"a": both["a"]}
    known = after(known, run(known, alone))
    assert known.keys() == {"a"}
    decisions = run(known, {"a": (listed("a", 4, touched=2), content("abc"))})
    assert set(decisions.removed) == {content("ab").source_id}
    assert decisions.added == {content("abc").source_id: "a"}


def test_rows_of_a_removed_file_pass_to_an_equal_one_of_another_hour() -> None:
    known = one("ab", "m")
    there = {"z": listed("z", 5)}
    decisions = decide(known, there, {"z": content("ab")}, {"z"}, RULES)
    assert decisions.dropped == {"m"}
    assert decisions.files["z"].status == "ingested"
    assert decisions.added == {content("ab").source_id: "z"}


def test_file_waiting_in_an_hour_outside_the_run_is_not_touched() -> None:
    far = replace(RULES, permitted=lambda hour: False)
    waiting = {name: (listed(name, hour), content(name, (hour,))) for name, hour in (("a", 1), ("b", 9))}
    known = after({}, run({}, waiting, far))
    assert decide(known, {}, {}, {"a"}, RULES).dropped == {"a"}


def test_rows_of_a_removed_canonical_file_pass_to_a_duplicate() -> None:
    both = {"a": (listed("a", 4), content("ab")), "m": (listed("m", 5), content("ab"))}
    known = after({}, run({}, both))
    decisions = run(known, {"m": both["m"]})
    assert decisions.dropped == {"a"}
    assert decisions.added == {content("ab").source_id: "m"}


def test_unreadable_file_is_read_again_and_no_conflict() -> None:
    known = one("ab")
    unreadable = replace(
        content("", ()), source_id="", digest="", failed="cannot be read: Input/output error"
    )
    there = listed("f", touched=2)
    stored = after(known, run(known, {"f": (there, unreadable)}))
    assert (stored["f"].status, stored["f"].source_id) == ("quarantined", content("ab").source_id)
    assert [cause.text for cause in state(stored).wrong] == ["f: cannot be read: Input/output error"]
    assert needs_read(there, stored["f"], RULES)
    mended = after(stored, run(stored, {"f": (there, content("abc"))}))
    assert (mended["f"].status, mended["f"].source_id) == ("ingested", content("abc").source_id)


def test_duplicates_are_counted_by_content_for_any_names() -> None:
    (file,) = one("abc").values()
    stored = replace(file, accepted=5, duplicates=3, lines=8)
    known = {"f": stored, "again": replace(stored, path="again", status="duplicate")}
    # Read again, as a new file appeared next to them: their duplicates are not known yet.
    afresh = {path: replace(file, accepted=8, duplicates=0) for path, file in known.items()}
    other = replace(stored, path="other", source_id="other", accepted=4, duplicates=0, lines=4)
    held_back = replace(other, path="back", source_id=None)
    files = {**afresh, "other": other, "back": held_back}
    assert stored.source_id is not None
    assert with_duplicates(files, known, (), {}) == {**known, "other": other, "back": held_back}
    moved = with_duplicates(files, known, (), {stored.source_id: -2, "other": 2})
    assert {path: (file.accepted, file.duplicates) for path, file in moved.items()} == {
        "f": (7, 1), "again": (7, 1), "other": (2, 2), "back": (4, 0),
    }  # fmt: skip
    # Rows that are published again are all counted again.
    again_run = with_duplicates(files, known, {stored.source_id}, {stored.source_id: 4})
    assert (again_run["f"].accepted, again_run["again"].duplicates, again_run["other"]) == (4, 4, other)


def test_rows_of_another_specification_that_cannot_be_read_again_are_reported() -> None:
    known = one("ab")
    removed = after(known, run(known, {}))
    other = replace(RULES, spec_hash=lambda hour: "other")
    assert missing(removed) == ()
    assert missing(removed, rules=other) == ("f: its rows were read under another specification",)
    assert not state(removed, rules=other).mixed_specifications


def test_rows_of_another_specification_that_can_be_read_again_make_their_hours_mixed() -> None:
    known = after({}, run({}, {"f": (listed("f", 5), content("ab", (3, 5)))}))
    other = replace(RULES, spec_hash=lambda hour: "other")
    for rules, mixed in ((RULES, False), (other, True)):
        states = hour_states(known.values(), [at(3), at(4), at(5)], rules.spec_hash, {"f"})
        assert [states[at(number)].mixed_specifications for number in (3, 4, 5)] == [mixed, False, mixed]
        texts = "its rows were read under another specification"
        again = f"f: {texts}; a run from 2015-05-17T03:00 to 2015-05-17T06:00 reads it again"
        assert [cause.text for cause in states[at(3)].missing] == ([again] if mixed else [])
    # The published content was last read where another content is now; a second name has no rows.
    for status, same in (("conflict", False), ("quarantined", True), ("waiting", True), ("duplicate", False)):
        for observed in (known["f"].source_id, "another"):
            stored = [replace(known["f"], status=status, status_reason="", last_read_source_id=observed)]
            mixed = hour_states(stored, [at(3)], other.spec_hash, {"f"})[at(3)].mixed_specifications
            assert mixed == (same and observed != "another")
