"""The results of each feature, compared by number with the rows of its table: page by page, and as a file."""

import csv
import io
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.support.elements import Elements
from tests.support.viewed_lake import SIX, ViewedLake, at
from tests.web.conftest import Pages
from transom.charts.section import MAX_ROWS
from transom.core.intervals import HOUR

Row = dict[str, Any]
MANY = MAX_ROWS + 30
SIX_DIGITS = 5e-6


def seconds(row: Row, start: str, end: str) -> float:
    length: timedelta = row[end] - row[start]
    return length.total_seconds()


def last_reports(rows: Iterable[Row], *identity: str) -> list[Row]:
    """Return the last report of each thing."""
    order = sorted(rows, key=lambda row: (row["hour"], row.get("fragment") or 0))
    return [*{tuple(row[name] for name in identity): row for row in order}.values()]


def filled(rows: list[Row]) -> list[Row]:
    """Return the rows of fills with the start of the frame, and what the order needs."""
    shifts = {None: "mean of all", 0.0: "the frame", 10800.0: "3 hours before"}
    result = []
    for row in last_reports(rows, "frame_id", "shift_s"):
        # The combined row has the start of the longest shift, and the end of the shortest.
        shift = timedelta(seconds=10800.0 if row["shift_s"] is None else row["shift_s"])
        start, length = row["start_time"] + shift, seconds(row, "start_time", "end_time")
        result.append(
            row
            | {"frame_start": start, "shift": shifts[row["shift_s"]]}
            | {"length": length - (10800.0 if row["shift_s"] is None else 0), "first": start}
        )
    # The combined row comes last.
    order = {name: place for place, name in enumerate(shifts.values())}
    order["mean of all"] = 9
    result.sort(key=lambda row: (-row["length"], row["first"], row["frame_id"], order[row["shift"]]))
    return result


@dataclass(frozen=True)
class Case:
    """The page of a block.

    Attributes:
        address: its address.
        table: its table.
        block: the block.
        expected: returns the rows that it shows, in order, of all rows of the block.
        other: the columns of the page that have another name in the table.
    """

    address: str
    table: str
    block: str
    expected: Callable[[list[Row]], list[Row]]
    other: Mapping[str, str] = field(default_factory=dict)


def bounded(row: Row) -> Row:
    """Return a row of an item, without a bound of the error of an exact count."""
    return row | {"error_bound": None} if row["low"] == row["high"] else row


LINES = {
    f"{part}_{measure} ({measure} per hour{end})": f"{part}_{measure}"
    for measure in ("n", "sent")
    for part, end in (("slope", ", per hour"), ("intercept", ""))
}
"""The columns of lines: their titles have the units."""
CASES = {
    "aggregates of a key": Case(
        "aggregates/traffic?key=a", "aggregates", "traffic",
        lambda rows: sorted(
            (row for row in rows if row["client"] == "a"),
            key=lambda row: (-row["window_end"].timestamp(), row["level"]),
        ),
        LINES,
    ),
    "aggregates": Case(
        "aggregates/traffic", "aggregates", "traffic",
        # Both keys are among the five that are shown.
        lambda rows: sorted(
            (row for row in rows if row["level"] == 1),
            key=lambda row: (-row["window_end"].timestamp(), row["client"]),
        ),
        LINES,
    ),
    "episodes": Case(
        "patterns/back", "episodes", "back",
        lambda rows: sorted(
            (
                # The delay is that of the first detected match.
                row | {"detection_delay_s": int(row["episode_id"][1:]) / 8}
                for row in last_reports(rows, "episode_id")
                if row["state"] != "joined"
            ),
            key=lambda row: (-row["start_time"].timestamp(), row["episode_id"]),
        ),
    ),
    "frames": Case(
        "frames/busy", "frames", "busy",
        lambda rows: sorted(
            (
                row | {"end_time": row["start_time"] + timedelta(seconds=row["length_s"])}
                for row in last_reports(rows, "frame_id")
            ),
            key=lambda row: (-row["length_s"], row["start_time"], row["frame_id"]),
        ),
        {"peak bytes": "peak", "mean bytes": "mean"},
    ),
    "fills": Case(
        "fills/before", "fills", "before", filled, {"rows_from": "start_time", "rows_to": "end_time"}
    ),
    "persistent items": Case(
        "persistence/regulars", "persistent_items", "regulars",
        lambda rows: sorted(
            (
                row
                for row in last_reports(rows, "client")
                if row["low"] is not None and (row["spell_id"] is not None or row["watched"])
            ),
            key=lambda row: (-row["low"], -row["high"], row["client"]),
        ),
    ),
    "frequent items": Case(
        "frequency/often", "frequencies", "often",
        lambda rows: sorted(
            map(bounded, (row for row in rows if row["low"] is not None and row["window_end"] == at(5))),
            key=lambda row: row["rank"],
        ),
    ),
    "frequency of an item": Case(
        "frequency/often?key.path=/p7", "frequencies", "often",
        lambda rows: sorted(
            map(bounded, (row for row in rows if row["path"] == "/p7")),
            key=lambda row: -row["window_end"].timestamp(),
        ),
    ),
}  # fmt: skip


class Drawn:
    """Rows with drawn values, and a lake that has them."""

    def __init__(self, lake: ViewedLake) -> None:
        self.lake, self.rng = lake, random.Random(7)

    def row(self, table: str, **given: Any) -> Row:
        """Return a row whose other values are drawn."""
        schema = self.lake.tables[table].arrow_schema()
        return {of.name: given.get(of.name, self.value(of.type)) for of in schema} | given

    def value(self, kind: pa.DataType) -> Any:
        if self.rng.random() < 0.1:
            return None
        if pa.types.is_integer(kind):
            return self.rng.randrange(-50, 2**31 - 1)
        if pa.types.is_floating(kind):
            return self.rng.choice([self.rng.random(), 1e-7 * self.rng.random(), self.rng.uniform(-1e9, 1e9)])
        if pa.types.is_boolean(kind):
            return self.rng.random() < 0.5
        if pa.types.is_timestamp(kind):
            return at(self.rng.randrange(2**20) / 2**18)
        return f"t{self.rng.randrange(99)}" if pa.types.is_string(kind) else None

    def add(self, table: str, rows: Iterator[Row]) -> None:
        """Add rows to a table, in any order."""
        drawn = [*rows]
        self.rng.shuffle(drawn)
        self.lake.add(table, drawn)

    def aggregates(self) -> Iterator[Row]:
        for n in range(2 * MANY):
            # Both levels of both keys have windows with the same end.
            end, drawn = at((n // 4 + 1) / 30), n % 5 > 0
            of = {"hour": at(n // 120), "block": "traffic", "client": "ab"[n % 4 // 2], "level": n % 2}
            # A window has a line or none.
            line = {
                f"{part}_{m}": n / 7 if drawn else None
                for part in ("intercept", "slope")
                for m in ("n", "sent")
            }
            yield self.row("aggregates", **of, **line, window_start=end - HOUR, window_end=end, n=n, count=n)

    def episodes(self) -> Iterator[Row]:
        for n in range(MANY):
            for hour in range(n % 3 + 1):
                of = {"hour": at(hour), "block": "back", "episode_id": f"e{n:03}", "level": n % 4}
                state = "joined" if n % 9 == 2 and hour == 2 else "partial"
                times = {
                    "start_time": at(n // 2 / 500),
                    "last_time": at(n / 500),
                    "detected_at": at(hour + 1),
                }
                yield self.row("episodes", **of, **times, state=state)

    def matches(self) -> Iterator[Row]:
        for n in range(MANY):
            of = {"hour": at(0), "block": "back", "match_id": f"e{n:03}", "detection_delay_s": n / 8}
            of |= {"first_time": at(0), "last_time": at(0)}
            yield self.row("matches", **of, steps=[])

    def frames(self) -> Iterator[Row]:
        for n in range(MANY):
            for hour in range(n % 3 + 1):
                of = {"hour": at(hour), "block": "busy", "frame_id": f"f{n:03}", "fragment": hour + 1}
                of |= {
                    "start_time": at(n // 7 / 50),
                    "last_time": at(hour + 1),
                    "length_s": n // 2 + hour / 2,
                }
                yield self.row("frames", **of, state="partial", client=f"c{n % 9}")

    def fills(self) -> Iterator[Row]:
        for n in range(MANY // 2):
            for hour in range(n % 2 + 1):
                for shift in (0.0, 10800.0, None):
                    of = {"hour": at(hour), "block": "before", "frame_id": f"f{n:03}", "fragment": hour + 1}
                    # The combined row has the hours of all shifts.
                    of["start_time"] = at(n / 100) - timedelta(seconds=10800.0 if shift is None else shift)
                    of["end_time"] = at(1 + hour + n // 7 / 10) - timedelta(seconds=shift or 0)
                    yield self.row("fills", **of, shift_s=shift, client=f"c{n % 9}", state="final")

    def persistent_items(self) -> Iterator[Row]:
        for n in range(MANY + 30):
            for hour in range(n % 4 + 1):
                of = {"hour": at(hour), "block": "regulars", "client": f"c{n}", "window_end": at(hour + 1)}
                has_left = n % 16 == 3 and hour > 1
                counts = (
                    {"low": None} if has_left else {"low": n // 3, "high": n // 3 + n % 5, "slots": "?011"}
                )
                yield self.row("persistent_items", **of, **counts)

    def frequencies(self) -> Iterator[Row]:
        for n in range(2 * MANY):
            # Reports of one item, and the last report of all.
            of = {"hour": at(n % 4), "window_end": at(n / 120), "path": "/p7"}
            if n % 2:
                of = {"hour": at(4), "window_end": at(5), "path": f"/p{n}"}
            low = n // 2 if n % 10 else None
            yield self.row("frequencies", **of, block="often", rank=n, low=low, high=2 * n, estimate=n)


@pytest.fixture(scope="module")
def drawn(shared: Pages) -> Pages:
    lake = shared.lake
    combined = "shift: [0 hours, 3 hours], combine: mean"
    lake.file.write_text(SIX.replace("shift: [3 hours]", combined))
    lake.load()
    rows = Drawn(lake)
    for table in ("aggregates", "episodes", "matches", "frames", "fills", "persistent_items", "frequencies"):
        rows.add(table, getattr(rows, table)())
    return shared


def expected_rows(lake: ViewedLake, case: Case) -> list[Row]:
    """Return the rows that a page shows, as its table has them."""
    rows = DeltaTable(f"{lake.root}/{case.table}").to_pyarrow_table().to_pylist()
    return case.expected([row for row in rows if row["block"] == case.block])


def is_text_of(text: str, value: object, is_file: bool) -> bool:
    """Return whether a text has a value; a page has times to the second, and numbers to six digits."""
    if value is None:
        return text == ""
    if isinstance(value, bool):
        return text == ((str(value).lower()) if is_file else ("yes" if value else "no"))
    if isinstance(value, int):
        return text == str(value)
    if isinstance(value, float):
        return float(text) == value if is_file else math.isclose(float(text), value, rel_tol=SIX_DIGITS)
    if isinstance(value, datetime):
        moment = datetime.fromisoformat(text if is_file else f"{text}+00:00")
        return moment == (value if is_file else value.replace(microsecond=0))
    return text == value


def assert_same(shown: list[dict[str, str]], expected: list[Row], case: Case, is_file: bool = False) -> None:
    assert len(shown) == len(expected)
    for texts, row in zip(shown, expected, strict=True):
        for column, text in texts.items():
            value = row[case.other.get(column, column)]
            assert is_text_of(text, value, is_file), (column, text, value, row)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_pages_of_results_have_the_numbers_of_the_table(drawn: Pages, case: Case) -> None:
    expected = expected_rows(drawn.lake, case)
    total, pages = len(expected), -(-len(expected) // MAX_ROWS)
    assert pages == 2, "the case has rows for two pages"
    anchor = f"part-{'-'.join(case.address.partition('?')[0].split('/'))}"
    sign = "&" if "?" in case.address else "?"
    for number in (1, 2):
        page = Elements(drawn.get(f"/results/{case.address}{sign}page={number}").text)
        part, first = page.sections[anchor], (number - 1) * MAX_ROWS
        assert_same(part.table, expected[first : first + MAX_ROWS], case)
        last = min(first + MAX_ROWS, total)
        assert f"Figures: {total} rows, {first + 1} to {last} shown" in part.text
        assert f"Page {number} of 2" in part.text
        others = {link.rpartition("page=")[2] for link in page.links if "page=" in link}
        assert others == {str(3 - number)}
        note = part.text.partition("Figures")[0]
        assert "No " not in note
        assert f"{total} " in note


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_page_after_the_last_one_leads_to_the_last_one(drawn: Pages, case: Case) -> None:
    total = len(expected_rows(drawn.lake, case))
    page = Elements(drawn.get(f"/results/{case.address}{'&' if '?' in case.address else '?'}page=9").text)
    part = page.sections[f"part-{'-'.join(case.address.partition('?')[0].split('/'))}"]
    assert f"{total} " in part.text
    assert "No row: 2 pages" in part.text
    assert {link.rpartition("page=")[2] for link in page.links if "page=" in link} == {"2"}
    assert part.rows == []


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_file_of_results_has_the_numbers_of_the_table(drawn: Pages, case: Case) -> None:
    path, _, key = case.address.partition("?")
    text = drawn.get(f"/results/{path}.csv?{key}").text
    assert_same([*csv.DictReader(io.StringIO(text))], expected_rows(drawn.lake, case), case, True)


def test_page_of_frames_has_the_fills_of_the_same_frames(drawn: Pages) -> None:
    page = Elements(drawn.get("/results/frames/busy").text)
    fills = page.sections["part-fills-before"]
    assert_same(fills.table, expected_rows(drawn.lake, CASES["fills"])[:MAX_ROWS], CASES["fills"])
    (file,) = {
        link.removeprefix("/streams/six") for link in page.links if "/fills/" in link and ".csv" in link
    }
    assert drawn.get(file).text == drawn.get("/results/fills/before.csv").text
    assert "part-frames-busy" not in Elements(drawn.get("/results/fills/before").text).sections


def test_files_of_many_keys_have_the_numbers_of_the_table(pages: Pages) -> None:
    rows = Drawn(pages.lake)
    of = {"block": "traffic", "level": 1, "window_start": at(3)}
    rows.add(
        "aggregates",
        (
            rows.row(
                "aggregates", **of, hour=at(end - 1), window_end=at(end), client=f"c{n}", slope_n=n % 5 / 7
            )
            for n in range(9)
            for end in (5, 6)
        ),
    )
    case = Case(
        "aggregates/traffic", "aggregates", "traffic",
        lambda found: sorted(found, key=lambda row: (-row["window_end"].timestamp(), row["client"])), LINES,
    )  # fmt: skip
    growing = Case(
        "aggregates/traffic", "aggregates", "traffic",
        lambda found: sorted(
            (row for row in found if row["window_end"] == at(6)),
            key=lambda row: (-row["slope_n"], row["client"]),
        ),
        LINES,
    )  # fmt: skip
    for address, of_case in (("", case), ("?order=n", growing)):
        text = pages.get(f"/results/aggregates/traffic.csv{address}").text
        assert_same([*csv.DictReader(io.StringIO(text))], expected_rows(pages.lake, of_case), of_case, True)
    page = Elements(pages.get("/results/aggregates/traffic?order=n").text)
    assert_same(page.sections["part-aggregates-traffic"].table, expected_rows(pages.lake, growing), growing)
