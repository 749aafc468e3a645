"""The output of `transom try` on persistent items."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.stream_factories import changed
from transom.core.partitions import PartitionKey, PartitionState
from transom.features.persistence.render import ROWS, WIDE, print_persistent_items
from transom.ledger.ledger import Ledger
from transom.stream import Stream, parse

START = datetime(2024, 5, 6, 7, tzinfo=UTC)
HOUR = timedelta(hours=1)
SAID = {"item": ["user"], "slot": "1 hour", "window": "2 days", "alpha": 0.5, "epsilon": 0.25}


@pytest.fixture
def stream() -> Stream:
    return parse(changed(persistence={"regulars": SAID, "others": SAID}), "app.yaml")


def item(user: str, low: int | None, hour: datetime = START, slots: str = "01" * 24) -> dict[str, Any]:
    return {
        "block": "regulars", "hour": hour, "user": user, "window_end": hour + HOUR, "low": low,
        "high": None if low is None else low + 2, "estimate": None if low is None else low + 1.5,
        "since": START - 30 * HOUR, "records": 60, "gap_mean_s": 3600.0, "gap_cv": 0.25, "slots": slots,
    }  # fmt: skip


def shown(
    stream: Stream,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    rows: list[dict[str, Any]],
    last: datetime = START,
) -> list[list[str]]:
    ledger = Ledger(str(folder))
    nodes = [
        PartitionKey("persistence", "regulars", "persistent_items", hour) for hour in (last - HOUR, last)
    ]
    ledger.claim("persistence", nodes, "a")
    ledger.publish("persistence", dict.fromkeys(nodes, PartitionState("published", "a")), "a")
    write_deltalake(f"{folder}/persistent_items", pa.Table.from_pylist(rows))
    print_persistent_items(stream, str(folder))
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_items_of_the_last_report_are_shown_the_most_persistent_first(
    stream: Stream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [item("old", 40, START - HOUR), item("gone", None), item("b", 24), item("a", 24), item("c", 30)]
    lines = shown(stream, tmp_path, capsys, rows)
    of_items = [line for line in lines if "60" in line]
    assert [line[0] for line in of_items] == ["c", "a", "b"]
    assert of_items[0] == [
        "c", "30", "to", "32", "31.5", "2024-05-05T01:00", "60", "3600", "0.25", "01" * 24
    ]  # fmt: skip
    title = "regulars: user in 24 of 48 slots of 1 hour, or nearly so, at 2024-05-06T08:00: 3"
    assert title.split() in lines
    none = "others: no user in 24 of 48 slots of 1 hour, nor nearly so, in any report"
    assert none.split() in lines


def test_only_the_first_of_many_items_are_shown(
    stream: Stream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(stream, tmp_path, capsys, [item(f"u{number:02}", 24) for number in range(ROWS + 3)])
    assert [line[0] for line in lines if "60" in line] == [f"u{number:02}" for number in range(ROWS)]
    assert any(line[-5:] == f"the first {ROWS} of {ROWS + 3}".split() for line in lines)


def test_many_slots_are_rendered_in_few_characters(
    stream: Stream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slots = "?" * 96 + "0" * 95 + "1" + "0" * 2
    lines = shown(stream, tmp_path, capsys, [item("a", 24, slots=slots)])
    (line,) = (line for line in lines if "60" in line)
    assert len(line[-1]) <= WIDE
    assert line[-1] == "?" * 19 + "0" * 19 + "-"
    assert ["?:", "not", "remembered,", "so", "here", "or", "not"] in lines


def test_lake_without_a_report_shows_nothing(
    stream: Stream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_persistent_items(stream, str(tmp_path))
    assert capsys.readouterr().out.count("nor nearly so") == 2


def test_previous_report_is_shown_if_the_last_names_no_item(
    stream: Stream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The findings report the item, so the output must not call it absent."""
    lines = shown(stream, tmp_path, capsys, [item("a", 24)], START + HOUR)
    title = (
        "regulars: user in 24 of 48 slots of 1 hour, or nearly so, at 2024-05-06T08:00 (the last report that "
        "names any; none is named at 2024-05-06T09:00): 1"
    )
    assert title.split() in lines
    assert [line[0] for line in lines if "60" in line] == ["a"]
    assert not any(line[:3] == ["regulars:", "no", "user"] for line in lines)


def test_watched_item_is_marked_as_watched(
    stream: Stream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [item("a", 24), item("b", 2) | {"since": None}]
    of_items = [line for line in shown(stream, tmp_path, capsys, rows) if "60" in line]
    assert [line[5] for line in of_items] == ["2024-05-05T01:00", "watched"]
