"""Episodes: the definition's properties over whole histories, and the vectorised form compared with it."""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import rare_case
from transom.core.intervals import HOUR_LENGTH
from transom.features.patterns.algorithm.episodes import (
    DTYPE,
    FINAL,
    JOINED,
    NONE,
    PARTIAL,
    Merging,
    episodes,
)

QUARTER = HOUR_LENGTH // 4
HOURS = 40
CASE = rare_case(3)


@dataclass(frozen=True)
class EpisodeRow:
    """One of `EpisodeRows`."""

    hour: int
    id: int
    key: int
    start: int
    end: int
    matches: int
    new: int
    detected_at: int
    level: int
    state: int = PARTIAL
    joined: int = NONE


def rows_of(
    hour: int, matches: Iterable[EpisodeRow], earlier: Iterable[EpisodeRow], merging: Merging
) -> list[EpisodeRow]:
    """Return the rows of an hour: the definition.

    Args:
        matches: the matches of the hour.
        earlier: rows of earlier hours; of those in reach the last row of each episode counts.
    """
    by, earliest = hour + HOUR_LENGTH, hour - merging.reach * HOUR_LENGTH
    in_reach = [row for row in earlier if earliest <= row.hour < hour]
    latest = {row.id: row for row in sorted(in_reach, key=lambda row: row.hour)}
    rows = []
    for group in _groups([*(r for r in latest.values() if r.state == PARTIAL), *matches], merging.merge):
        new, old = ([row for row in group if (row.hour == hour) is is_new] for is_new in (True, False))
        if not new:
            rows += [replace(r, hour=hour, new=0, state=FINAL) for r in old if merging.final(r.end, by)]
            continue
        first = min(old or new, key=lambda row: (row.detected_at, row.id))
        end = max(row.end for row in group)
        start, matched = min(row.start for row in group), sum(row.matches for row in group)
        state = FINAL if merging.final(end, by) else PARTIAL
        rows.append(
            replace(first, hour=hour, start=start, end=end, matches=matched, new=len(new), state=state)
        )
        joined = (row for row in old if row is not first)
        rows += [replace(row, hour=hour, new=0, state=JOINED, joined=first.id) for row in joined]
    return rows


def _groups(rows: Iterable[EpisodeRow], merge: int) -> list[list[EpisodeRow]]:
    """Group rows that overlap or are at most `merge` apart, transitively."""
    groups: list[list[EpisodeRow]] = []
    for row in sorted(rows, key=lambda row: (row.key, row.start)):
        last = groups[-1] if groups else []
        if last and last[0].key == row.key and row.start <= max(r.end for r in last) + merge:
            last.append(row)
        else:
            groups.append([row])
    return groups


@st.composite
def mergings(draw: st.DrawFn) -> Merging:
    """Draw one to five levels, with batches of 15 or 30 minutes."""
    top = QUARTER << draw(st.integers(0, 4))
    within = draw(st.sampled_from([top, top - 1, top // 2 + 1]))
    merge = draw(
        st.sampled_from([0, 0, 1, QUARTER, HOUR_LENGTH - 1, HOUR_LENGTH, HOUR_LENGTH + 2, 3 * HOUR_LENGTH])
    )
    return Merging(merge, within, top)


@st.composite
def matches_of(draw: st.DrawFn, merging: Merging) -> list[EpisodeRow]:
    """Draw matches, each detected at the end of the window that its last record completes."""
    result = []
    # Their numbers are not in order of time.
    for number in draw(st.permutations(range(draw(st.integers(0, 9))))):
        level = draw(st.integers(0, (merging.top // QUARTER).bit_length() - 1))
        length = QUARTER << level
        end = draw(st.integers(1, 12 * HOUR_LENGTH // length)) * length
        last = draw(st.sampled_from([end - length, end - 1, end - length + length // 2]))
        first = last - draw(st.sampled_from([0, 1, merging.within // 2, merging.within]))
        result.append(
            EpisodeRow(
                hour=(end - 1) // HOUR_LENGTH * HOUR_LENGTH,
                id=number,
                key=draw(st.sampled_from([0, 0, 0, 1])),
                start=first, end=last, matches=1, new=1, detected_at=end, level=level,
            )
        )  # fmt: skip
    return result


@st.composite
def histories(draw: st.DrawFn) -> tuple[Merging, list[EpisodeRow]]:
    merging = draw(mergings())
    return merging, draw(matches_of(merging))


def defined(
    matches: Sequence[EpisodeRow], stored: Sequence[EpisodeRow], hours: Iterable[int], merging: Merging
) -> list[EpisodeRow]:
    """Return the rows hour by hour, by the definition."""
    computed: list[EpisodeRow] = []
    for hour in hours:
        of_hour = [match for match in matches if match.hour == hour]
        computed += rows_of(hour, of_hour, [*stored, *computed], merging)
    return in_order(computed)


def fast(
    matches: Sequence[EpisodeRow], stored: Sequence[EpisodeRow], hours: Iterable[int], merging: Merging
) -> list[EpisodeRow]:
    arrays = (np.array([astuple(row) for row in rows], DTYPE) for rows in (matches, stored))
    return in_order(EpisodeRow(*row) for row in episodes(*arrays, hours, merging).tolist())


def in_order(rows: Iterable[EpisodeRow]) -> list[EpisodeRow]:
    return sorted(rows, key=lambda row: (row.hour, *astuple(row)))


def whole(matches: Sequence[EpisodeRow], merging: Merging) -> list[EpisodeRow]:
    return fast(matches, [], range(0, HOURS * HOUR_LENGTH, HOUR_LENGTH), merging)


@st.composite
def stored_rows(draw: st.DrawFn) -> list[EpisodeRow]:
    """Draw any rows that hours may have, with or without matches."""
    result = []
    for number in range(draw(st.integers(0, 6))):
        start = draw(st.integers(-40, 30)) * QUARTER
        one = EpisodeRow(
            hour=0, id=100 + number, key=draw(st.integers(0, 1)), start=start,
            end=start + draw(st.integers(0, 8)) * QUARTER, matches=draw(st.integers(1, 3)), new=0,
            detected_at=draw(st.sampled_from([0, 1, 20 * HOUR_LENGTH])), level=draw(st.integers(0, 2)),
        )  # fmt: skip
        for hour in draw(st.lists(st.integers(-3, 9), min_size=1, max_size=6, unique=True)):
            state = draw(st.sampled_from([PARTIAL, PARTIAL, FINAL, JOINED]))
            result.append(
                replace(one, hour=hour * HOUR_LENGTH, state=state, joined=99 if state == JOINED else NONE)
            )
    return result


@CASE
@given(history=histories(), stored=stored_rows(), hours=st.sets(st.integers(0, 12), min_size=4))
def test_many_hours_and_keys_at_once_equal_the_definition(
    history: tuple[Merging, list[EpisodeRow]], stored: list[EpisodeRow], hours: set[int]
) -> None:
    merging, matches = history
    targets = [hour * HOUR_LENGTH for hour in sorted(hours)]
    own = [match for match in matches if match.hour in targets]
    others = [row for row in stored if row.hour not in targets]
    assert fast(own, others, targets, merging) == defined(own, others, targets, merging)


@CASE
@given(history=histories(), cuts=st.lists(st.integers(1, HOURS), max_size=8))
def test_split_of_hours_into_runs_leaves_no_trace(
    history: tuple[Merging, list[EpisodeRow]], cuts: list[int]
) -> None:
    merging, matches = history
    rows: list[EpisodeRow] = []
    for first, later in zip([0, *sorted(cuts)], [*sorted(cuts), HOURS], strict=True):
        hours = range(first * HOUR_LENGTH, later * HOUR_LENGTH, HOUR_LENGTH)
        reached = [row for row in rows if hours.start - merging.reach * HOUR_LENGTH <= row.hour]
        rows += fast([match for match in matches if match.hour in hours], reached, hours, merging)
    assert in_order(rows) == whole(matches, merging)


@CASE
@given(history=histories())
def test_final_episodes_are_the_union_of_all_matches(history: tuple[Merging, list[EpisodeRow]]) -> None:
    merging, matches = history
    rows = whole(matches, merging)
    ends = {row.id: row for row in rows}
    assert {row.state for row in ends.values()} <= {FINAL, JOINED}
    result = {
        (row.key, row.start, row.end, row.matches, row.detected_at, row.level)
        for row in ends.values()
        if row.state == FINAL
    }
    components = components_of(matches, merging.merge)
    values = {
        (
            some[0].key,
            min(match.start for match in some),
            max(match.end for match in some),
            len(some),
            *min((match.detected_at, match.id, match.level) for match in some)[::2],
        )
        for some in components
    }
    assert result == values
    # The name comes from a match of a component's first hour, and for joined ones from the first; each is
    # one.
    first = [{match.id for match in some} for some in components]
    assert all(len(of & {id for id, row in ends.items() if row.state == FINAL}) == 1 for of in first)
    by_id = {id: number for number, of in enumerate(first) for id in of}
    assert all(by_id[row.joined] == by_id[row.id] for row in rows if row.state == JOINED)


def components_of(matches: Sequence[EpisodeRow], merge: int) -> list[list[EpisodeRow]]:
    """Return matches that reach each other: of one key by start, each with those at most merge away."""
    components: list[list[EpisodeRow]] = []
    for match in sorted(matches, key=lambda match: (match.key, match.start)):
        last = components[-1] if components else []
        if last and last[0].key == match.key and match.start <= max(one.end for one in last) + merge:
            last.append(match)
        else:
            components.append([match])
    return components


@CASE
@given(history=histories())
def test_episode_has_one_last_row_and_every_match_counts_once(
    history: tuple[Merging, list[EpisodeRow]],
) -> None:
    merging, matches = history
    rows = whole(matches, merging)
    of_id: dict[int, list[EpisodeRow]] = {}
    for row in rows:
        of_id.setdefault(row.id, []).append(row)
    for of_one in of_id.values():
        *partial, last = of_one
        assert last.state != PARTIAL
        assert {row.state for row in partial} <= {PARTIAL}
        assert (last.joined != NONE) == (last.state == JOINED)
        assert len({row.hour for row in of_one}) == len(of_one)
        assert len({(row.detected_at, row.level, row.key) for row in of_one}) == 1
        assert all(row.end < row.hour + HOUR_LENGTH and row.start <= row.end for row in of_one)
        # Without news an hour reports an episode only when it ends.
        assert all(row.new or row.state != PARTIAL for row in of_one)
        assert (
            last.end + merging.merge <= last.hour + HOUR_LENGTH - merging.top - merging.within
        ) or last.joined != NONE
        for before, after in pairwise(of_one):
            assert after.start <= before.start <= before.end <= after.end
            same = replace(before, hour=after.hour, new=0, state=after.state, joined=after.joined)
            assert after == same or after.new
    for hour in {row.hour for row in [*rows, *matches]}:
        assert sum(row.new for row in rows if row.hour == hour) == sum(m.hour == hour for m in matches)


@CASE
@given(history=histories())
def test_row_further_back_than_the_reach_is_never_open(history: tuple[Merging, list[EpisodeRow]]) -> None:
    class Further(Merging):
        @property
        def reach(self) -> int:
            return HOURS

    merging, matches = history
    assert whole(matches, merging) == whole(matches, Further(merging.merge, merging.within, merging.top))


def match(hour: int, first: int, last: int, number: int = 0) -> EpisodeRow:
    return EpisodeRow(hour * HOUR_LENGTH, number, 0, first, last, 1, 1, (hour + 1) * HOUR_LENGTH, 0)


@pytest.mark.parametrize(
    ("more", "reach"),
    [(0, 7), (1, 8), (2, 8), (-1, 7), (HOUR_LENGTH - 1, 8), (HOUR_LENGTH, 8), (HOUR_LENGTH + 1, 9)],
)
def test_reach_is_that_of_a_record_at_the_end_of_its_hour(more: int, reach: int) -> None:
    merging = Merging(HOUR_LENGTH + more, 2 * HOUR_LENGTH, 4 * HOUR_LENGTH)
    assert merging.reach == reach
    (first, last) = fast([match(0, 0, HOUR_LENGTH - 1)], [], range(0, 12 * HOUR_LENGTH, HOUR_LENGTH), merging)
    # A further microsecond does not count in whole hours: the hour after its own ends is the first.
    assert last == replace(
        first, hour=(7 + (more > 1) + (more > HOUR_LENGTH + 1)) * HOUR_LENGTH, new=0, state=FINAL
    )


def test_episode_further_back_than_the_reach_is_unchanged() -> None:
    """The hours in between were not requested: no hour can report its end."""
    merging = Merging(0, HOUR_LENGTH, HOUR_LENGTH)
    assert fast([match(0, 0, HOUR_LENGTH - 1)], [], [0, 3 * HOUR_LENGTH], merging) == [
        match(0, 0, HOUR_LENGTH - 1)
    ]


def test_episode_is_final_when_the_earliest_future_match_cannot_join_it() -> None:
    merging = Merging(7, 90 * QUARTER, 128 * QUARTER)
    by = 400 * QUARTER
    # Detected a moment later, by a window of the top level.
    earliest = by + 1 - merging.top - merging.within
    ends = [end for end in range(earliest - 20, earliest) if merging.final(end, by)]
    assert max(ends) == earliest - merging.merge - 1


def test_match_joins_separate_episodes() -> None:
    merging = Merging(QUARTER, 3 * HOUR_LENGTH, 4 * HOUR_LENGTH)
    one, two = match(4, 10 * QUARTER, 11 * QUARTER, 2), match(4, 14 * QUARTER, 15 * QUARTER, 1)
    three, four = match(5, 12 * QUARTER, 13 * QUARTER, 5), match(5, 16 * QUARTER + 1, 18 * QUARTER, 0)
    result = fast([one, two, three, four], [], [4 * HOUR_LENGTH, 5 * HOUR_LENGTH], merging)
    assert result == [
        two,
        one,
        match(5, 16 * QUARTER + 1, 18 * QUARTER, 0),
        replace(two, hour=5 * HOUR_LENGTH, start=10 * QUARTER, end=15 * QUARTER, matches=3, new=1),
        replace(one, hour=5 * HOUR_LENGTH, new=0, state=JOINED, joined=1),
    ]
    # At a distance of merge it joins; once nothing can join, the end is reported at once.
    touching = replace(four, start=16 * QUARTER)
    (joined,) = [
        row
        for row in fast([one, two, three, touching], [], [4 * HOUR_LENGTH, 5 * HOUR_LENGTH], merging)
        if row.new > 1
    ]
    assert (joined.id, joined.matches, joined.end) == (1, 4, 18 * QUARTER)
    short = Merging(0, 1, QUARTER)
    assert [
        row.state for row in fast([match(1, HOUR_LENGTH, HOUR_LENGTH + 1)], [], [HOUR_LENGTH], short)
    ] == [FINAL]
