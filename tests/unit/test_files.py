"""What becomes of a file: new, grown, changed, gone, duplicated, too far, withheld."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from transom.stages.files import (
    Content,
    Decisions,
    File,
    Listed,
    Rules,
    decide,
    has_to_be_read,
    hour_states,
    source_id,
)

HOUR = timedelta(hours=1)
DAY = datetime(2015, 5, 17, tzinfo=UTC)
RULES = Rules("shape", False, lambda hour: True)


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
    near = Rules("shape", False, lambda hour: hour >= at(3))
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
    (state,) = hour_states(decisions.files.values(), [at(0)]).values()
    assert state.withheld == ("f: rejected_share",)


def test_another_specification_reads_every_file_again() -> None:
    known = one("ab")
    other = replace(RULES, shape="other")
    assert has_to_be_read(listed("f"), known["f"], other)
    decisions = run(known, {"f": (listed("f"), content("ab"))}, other)
    assert set(decisions.added) == set(decisions.removed) == {content("ab").source_id}


def test_captures_tell_equal_files_apart() -> None:
    assert source_id("d", {"host": "a"}) != source_id("d", {"host": "b"})
    assert source_id("d", {}) != source_id("d", {}, (at(0), at(1)))
