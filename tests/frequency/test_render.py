"""The output of `transom try` on frequent items."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.stream_factories import changed
from transom.features.frequency.render import ROWS, print_frequencies
from transom.stream import parse

START = datetime(2024, 5, 6, 7, tzinfo=UTC)
HOUR = timedelta(hours=1)
SAID = {"item": ["user"], "window": "6 hours", "tick": "1 hour", "epsilon": 0.1, "delta": 0.1}
BLOCKS = {"pages": SAID, "ever": {**SAID, "variant": "vanilla"}, "others": SAID}


def item(block: str, user: str, rank: int | None, hour: datetime = START) -> dict[str, Any]:
    low = None if rank is None else 60 - rank
    return {
        "block": block, "hour": hour, "user": user, "window_end": hour + HOUR, "rank": rank, "low": low,
        "high": None if low is None else low + 2, "estimate": None if low is None else low + 1,
        "window_records": 400, "max_unreported": 9, "since": START - 30 * HOUR if rank == 1 else None,
    }  # fmt: skip


@pytest.fixture
def lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    rows = [item("pages", f"u{rank:02}", rank) for rank in range(ROWS + 2, 0, -1)]
    rows += [item("pages", "old", 1, START - HOUR), item("pages", "gone", None, START + HOUR)]
    write_deltalake(f"{tmp_path}/frequencies", pa.Table.from_pylist([*rows, item("ever", "a", 1)]))
    print_frequencies(parse(changed(frequency=BLOCKS), "app.yaml"), str(tmp_path))
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_first_items_of_the_last_report_are_shown(lines: list[list[str]]) -> None:
    of_items = [line for line in lines if line and line[0].isdigit()][:-1]
    assert [line[1] for line in of_items] == [f"u{rank:02}" for rank in range(1, ROWS + 1)]
    assert of_items[0] == ["1", "u01", "60", "59", "to", "61", "15.0%", "2024-05-05T01:00"]
    assert not any({"old", "gone"} & {*line} for line in lines)
    title = "pages: user in the 6 hours up to 2024-05-06T08:00, 400 records; others at most 9 times"
    assert title.split() in lines
    none = "others: no user in the 6 hours up to the last report"
    assert none.split() in lines


def test_block_without_a_window_is_described_as_of_all_records(lines: list[list[str]]) -> None:
    title = "ever: user up to 2024-05-06T08:00, 400 records; others at most 9 times"
    assert title.split() in lines
