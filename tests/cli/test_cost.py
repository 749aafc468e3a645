"""The cost of a single hour: between its share of a run over many hours and the whole run."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from transom.cli.try_report import print_cost
from transom.core.intervals import HOUR, Interval
from transom.ledger.ledger import Ledger, Run

TEN = datetime(2015, 5, 17, 10, tzinfo=UTC)


def cost(root: Path, hours: int, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the printed cost of two stages, of which the first waited for Spark."""
    ledger, interval = Ledger(str(root)), Interval(TEN, TEN + hours * HOUR)
    for number, (stage, session, total) in enumerate([("ingest", 8.0, 20.0), ("aggregates", 0.0, 6.0)]):
        ledger.record_run(
            Run(
                f"r {stage}", "try", stage, interval.start, interval.end, 0, None, 900 - 900 * number, 70,
                {"session": session, "total": total}, 100, "0", datetime(2015, 5, 20, 12, number, tzinfo=UTC),
            )
        )  # fmt: skip
    print_cost(str(root), interval)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_cost_of_many_hours_is_divided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    title, head, _, *rows, text, more = cost(tmp_path, 36, capsys)
    assert title == "cost of 36 hours, run together"
    assert head.split() == ["stage", "lines", "read", "rows", "out", "seconds"]
    assert [row.split() for row in rows] == [["ingest", "900", "70", "12"], ["aggregates", "-", "70", "6"]]
    assert text == (
        "One hour on its own: 8.5 to 26.0 s, of which 8.0 s are the start of Spark and 0.50 s its share of "
        "the rest."
    )
    assert more == (
        "The fewer lines an hour has, the nearer it is to the upper end: every run makes the same commits "
        "and checks."
    )


def test_cost_of_one_hour_is_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = cost(tmp_path, 1, capsys)
    assert lines[0] == "cost of 1 hour, run on its own"
    assert lines[-1] == "One hour on its own: 26.0 s, of which 8.0 s are the start of Spark."
