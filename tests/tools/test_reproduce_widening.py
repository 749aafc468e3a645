"""The case study of widening windows prints each claim if true, and with NO if not."""

from collections.abc import Callable

import pytest

from reproduce import widening as study
from reproduce.detection import Detected, fixed, records
from reproduce.trace import ACCEPT, ERR, EXECUTE, IN, OUT, Calls, Episode, drawn, parsed
from reproduce.widening import COSTS, WAYS, bound

DURATIONS = (8, 24, 32, 80, 128, 256, 512)


def test_drawn_trace_is_equal_each_time_and_parsed_as_written() -> None:
    lines, episodes = drawn([4, 40])
    assert (lines, episodes) == drawn([4, 40])
    assert [one.last - one.first for one in episodes] == [4, 40]
    calls = parsed(lines)
    assert calls.time.tolist() == [*range(len(lines))]
    for number, one in enumerate(episodes):
        times = [one.first + (one.last - one.first) * part // 4 for part in range(5)]
        assert [lines[time] for time in times[:: len(times) - 1]] == [
            f"accept fd=3 => {64 + number}",
            "execve exe=/bin/sh",
        ]
        assert sorted(lines[time] for time in times[1:4]) == [
            f"dup fd={64 + number} => {to}" for to in range(3)
        ]
        bits = [int(calls.bits[time]) for time in times]
        assert bits[0] == 1 << ACCEPT
        assert sorted(bits[1:4]) == [1 << IN, 1 << OUT, 1 << ERR]
        assert bits[4] == 1 << EXECUTE
        assert {int(calls.fd[time]) for time in times[1:4]} == {int(calls.returned[times[0]])}


def test_line_that_is_no_call_is_refused() -> None:
    with pytest.raises(ValueError, match="line 2 is no call"):
        parsed(["close fd=3 => 0", "close 3"])


@pytest.mark.full
def test_claims_of_the_paper_about_delays_are_true() -> None:
    rows = [*study.delays(DURATIONS, 12)]
    output = study.delay_verdicts(rows)
    assert [text.partition(":")[0] for text in output] == ["yes"] * 5
    table = study.delay_table(rows)
    assert len(table) == 3 + len(DURATIONS)
    assert table[-1].split(" | ")[1::2] == ["missed", "missed"]


@pytest.mark.full
def test_claims_of_the_paper_about_work_are_true() -> None:
    rows = [*study.works((8, 80, 300, study.LONGEST), 6, (1, 64, 200))]
    output = study.work_verdicts(rows)
    assert [text.partition(":")[0] for text in output] == ["yes"] * 6
    assert "below one fixed window's from t = 64 on" in output[4]
    assert (
        len([line for line in study.work_tables(rows) if line.startswith(("| 1 |", "| 64 |", "| 200 |"))])
        == 9
    )


def test_bound_is_that_of_theorem_2() -> None:
    assert [bound(cost, 8) for cost in COSTS] == [2 * 400 / 8, 2 * 400**2 / 8]


Change = Callable[[dict[str, object]], dict[str, object]]


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (0, lambda row: row | {"delay": None} if row["way"] == WAYS[1] and row["duration"] == 80 else row),
        (1, lambda row: row | {"delay": 3} if row["way"] == WAYS[0] else row),
        (2, lambda row: row | {"delay": row["duration"]} if row["way"] == WAYS[1] else row),
        (3, lambda row: row | {"delay": 3} if row["way"] == WAYS[2] else row),
        (4, lambda row: row | {"delay": 30} if row["way"] == WAYS[3] else row),
    ],
)
def test_false_claim_about_delays_is_reported(place: int, change: Change) -> None:
    rows: list[dict[str, object]] = []
    for duration in DURATIONS:
        rows += [
            {"way": WAYS[0], "duration": duration, "delay": duration // 2 if duration < 100 else None},
            {"way": WAYS[1], "duration": duration, "delay": duration // 2},
            {"way": WAYS[2], "duration": duration, "delay": 9 if duration < 64 else None},
            {"way": WAYS[3], "duration": duration, "delay": 500},
        ]
    assert all(text.startswith("yes") for text in study.delay_verdicts(rows))
    output = study.delay_verdicts([change(row) for row in rows])
    assert [number for number, text in enumerate(output) if text.startswith("NO")] == [place]


@pytest.mark.parametrize(
    ("place", "stream", "way", "cost", "batch", "value"),
    [
        (0, "all calls", "listing", 0, 200, 4.1),
        (0, "all calls", "listing", 0, 64, 0.2),
        (1, "all calls", "listing", 0, 64, 1.9),
        (2, "own stream", "transom", 0, 64, 2.1),
        (3, "all calls", "listing", 1, 200, 1700.0),
        (4, "all calls", "listing", 1, 200, 1801.0),
        (5, "own stream", "transom", 1, 64, 1801.0),
    ],
)
def test_false_claim_about_work_is_reported(
    place: int, stream: str, way: str, cost: int, batch: int, value: float
) -> None:
    rows: list[dict[str, object]] = []
    works = {1: (18.0, 1950.0), 64: (6.4, 1700.0), 200: (3.5, 1400.0)}
    for at, (linear, square) in works.items():
        for of in ("all calls", "own stream"):
            rows += [
                {"batch": at, "stream": of, "way": "listing", COSTS[0]: linear, COSTS[1]: square},
                {"batch": at, "stream": of, "way": "transom", COSTS[0]: 0.2, COSTS[1]: 5.0},
                {"batch": at, "stream": of, "way": "fixed window", COSTS[0]: 2.0, COSTS[1]: 1800.0},
            ]
    assert all(text.startswith("yes") for text in study.work_verdicts(rows))
    for row in rows:
        if (row["stream"], row["way"], row["batch"]) == (stream, way, batch):
            row[COSTS[cost]] = value
    output = study.work_verdicts(rows)
    assert place in [number for number, text in enumerate(output) if text.startswith("NO")]


def test_differing_forms_fail_the_reproduction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "vectorised", lambda calls, widening: Detected({Episode(1, 9): 16}))
    with pytest.raises(
        SystemExit, match="all calls: the vectorised form does not detect what the listing does"
    ):
        [*study.delays((8, 16), 1)]


def test_false_episode_fails_the_reproduction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "fixed", lambda calls, half: Detected({Episode(1, 9): 16}))
    with pytest.raises(SystemExit, match=r"short window: .*first=1, last=9.* is no episode"):
        [*study.delays((8, 16), 1)]
    with pytest.raises(SystemExit, match="one fixed window, all calls: what is detected is not what"):
        [*study.works((8, 16), 1, (1,))]


def test_fixed_windows_overlap_by_half() -> None:
    lines, (episode,) = drawn([8])
    calls = records(parsed(lines))

    def episodes_found(shift: int, half: int) -> dict[Episode, int]:
        moved = [type(call)(call.time + shift, call.bits, call.fd, call.returned) for call in calls]
        return fixed(moved, half).ends

    for shift in range(16):
        first, last = episode.first + shift, episode.last + shift
        assert episodes_found(shift, 8) == {Episode(first, last): (last // 8 + 1) * 8}
        # A window of 8 units never contains a span from one to the eighth after it.
        assert episodes_found(shift, 4) == {}


def test_calls_can_be_read() -> None:
    calls = parsed(["accept fd=3 => 9", "close fd=9 => 0"])
    some = calls.taken(calls.bits > 0)
    assert isinstance(some, Calls)
    assert (some.time.tolist(), some.bits.tolist()) == ([0], [1 << ACCEPT])
