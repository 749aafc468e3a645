"""Summaries and findings of many rows: few of them are objects at a time, with the same result."""

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.ledger_factories import at
from transom.findings import store, summaries
from transom.findings.from_ledger import Finding
from transom.findings.source import HOUR, IDENTITY, MOMENT
from transom.findings.store import findings, replace
from transom.findings.summaries import MARK, TemplateSummaries
from transom.ledger.ledger import Ledger
from transom.storage.tables import Table


@dataclass(frozen=True)
class Template:
    """A template whose rows are those of the table."""

    block: str = "busy"

    def summarize(self, rows: pa.Table, *others: object) -> pa.Table:
        """Return the rows."""
        return rows


@dataclass(frozen=True)
class Named:
    """A name, and what else a stream or a source has."""

    name: str = "web"
    suppress: tuple[()] = ()
    stage: str = "frames"
    kind: str = "frame"


def test_few_rows_at_a_time_are_hashed_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    times = [datetime(2024, 3, 4, hour, tzinfo=UTC) for hour in range(7)]
    rows = pa.table(
        {
            IDENTITY: [f"frame {number}" for number in range(7)],
            HOUR: pa.array(times, MOMENT),
            "peak": [None, 1.5, 2.0, 0.25, 1.0, 7.0, 8.0],
        }
    )

    def marks(*parts: pa.Table) -> list[str]:
        stand_in: Any = Named()
        template: Any = Template()
        readers = [lambda part=part: part for part in parts]
        of_template = TemplateSummaries(stand_in, stand_in, template, {}, times[0], readers)
        found = [mark for of in of_template.all() for mark in of[MARK].to_pylist()]
        some = pa.array([times[2], times[5]], MOMENT)
        again = [mark for of in of_template.of_hours(some) for mark in of[MARK].to_pylist()]
        assert again == [found[place] for place in (2, 5) if place < len(found)]
        return found

    whole, sizes, of_batch = marks(rows), list[int](), summaries._marks
    assert len(set(whole)) == 7
    assert marks(rows.slice(0, 4), rows.slice(4, 1), rows.slice(5)) == whole
    monkeypatch.setattr(summaries, "ROWS_AT_A_TIME", 3)
    monkeypatch.setattr(
        summaries, "_marks", lambda rows, *words: sizes.append(len(rows)) or of_batch(rows, *words)
    )
    assert marks(rows) == whole
    assert sizes == [3, 3, 1]
    assert marks(rows.slice(0, 0)) == []


def finding(number: int) -> Finding:
    return Finding(
        stage="frames", hour=at(number), finding_id=f"{number:04}", kind="frame", block="busy",
        severity="low", title="a frame", start_time=at(number), end_time=at(number + 1), ongoing=False,
        evidence=("a rule",), key=None, item=None, exactness="exact", source_hash=str(number),
        first_hour=at(number),
    )  # fmt: skip


def test_findings_are_written_while_they_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "FINDINGS_AT_A_TIME", 10)
    ledger = Ledger(str(tmp_path))
    ledger.create(Table.load("findings"))
    alive, most = weakref.WeakSet[Finding](), 0

    def made() -> Iterator[Finding]:
        nonlocal most
        for number in range(200):
            of = finding(number)
            alive.add(of)
            most = max(most, len(alive))
            yield of

    replace(ledger.open("findings"), "stage = 'frames'", made())
    assert most <= 12
    assert sorted(findings(ledger.root), key=lambda of: of.finding_id) == [*map(finding, range(200))]
    replace(ledger.open("findings"), "stage = 'frames'", [])
    assert findings(ledger.root) == []
