"""Tables as CSV: all rows, and no cell is a formula."""

import csv as reader

import pytest

from tests.support.hostile import HOSTILE
from tests.support.viewed_lake import at, between, sections_of, window
from tests.web.conftest import Pages
from transom.charts.section import MAX_ROWS, DataTable
from transom.views.open_stream import OpenStream
from transom.web import csv


def parsed(table: DataTable) -> list[list[str]]:
    return [*reader.reader("".join(csv.lines(table)).splitlines())]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1", "=cmd|' /C calc'!A0"])
def test_formula_gets_an_apostrophe(text: str) -> None:
    assert parsed(DataTable.of(["a"], [[text]])) == [["a"], [f"'{text}"]]


def test_numbers_stay_numbers_and_times_have_their_zone() -> None:
    row = [-1, -0.5, 1e22, None, True, at(1), "a,b", 'a"b']
    assert parsed(DataTable.of("abcdefgh", [row]))[1] == [
        "-1", "-0.5", "1e22", "", "true", "2015-05-17T01:00:00Z", "a,b", 'a"b',
    ]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_one_printable_cell(text: str) -> None:
    _, (cell,) = parsed(DataTable.of(["a"], [[text]]))
    assert cell.isprintable()
    assert not cell.startswith(csv.FORMULA)
    cell.encode()


def test_name_of_a_column_is_a_cell() -> None:
    assert parsed(DataTable.of(["=a"], [])) == [["'=a"]]


def test_download_has_all_rows_of_a_block_as_the_table_has_them(pages: Pages) -> None:
    pages.lake.add("aggregates", [window(n % 6, "a", n, level=n // 6 % 2) for n in range(MAX_ROWS + 40)])
    (part,) = sections_of(
        OpenStream(pages.lake.uri, pages.lake.stream), "aggregates", None, between(0, 6), {"client": "a"}
    )
    assert part.table is not None
    header, *rows = parsed(part.table)
    assert tuple(header) == part.table.columns
    assert sorted(int(row[header.index("n")]) for row in rows) == [*range(MAX_ROWS + 40)]


def test_download_has_a_stated_limit(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transom.engine.selection.MAX_READ", 10)
    pages.lake.add("aggregates", [window(n % 6, "a", n) for n in range(MAX_ROWS + 40)])
    (part,) = sections_of(
        OpenStream(pages.lake.uri, pages.lake.stream), "aggregates", None, between(0, 6), {"client": "a"}
    )
    assert part.table is not None
    rows = parsed(part.table)
    assert (len(rows), rows[-1][0][:25]) == (12, "The first 10 of 240 rows:")
