"""How pages show sections and findings: orders, files, open tables, meanings of columns, groups and menus."""

import csv
import io
import re

import pytest

from tests.support.elements import Elements
from tests.support.viewed_lake import PERSISTENT, SIX, at, finding, window
from tests.views.test_findings import deliver, message
from tests.web.conftest import Pages
from transom.charts.section import RAW_ROWS
from transom.views.render import OPEN_ROWS

TABLE = re.compile(r"<details( open)?>\s*<summary>Figures: (\d+) rows?")


LONG = " and are sent by all of the servers of the site"


def clients(text: str) -> list[str]:
    return [row["client"] for row in csv.DictReader(io.StringIO(text))]


def test_fastest_growing_keys_are_a_page_and_a_file(pages: Pages) -> None:
    rows = [window(4, f"k{n}", 9 - n, level=1, slope_n=n / 2, slope_sent=-n / 2) for n in range(7)]
    pages.lake.add("aggregates", rows)
    address = "/results/aggregates/traffic"
    usual = Elements(pages.get(address).text)
    (link,) = (link for link in usual.links if "order=sent" in link and ".csv" not in link)
    assert "All windows of 2 hours every 1 hour of all 7 keys: 7 rows as CSV" in usual.text
    assert clients(pages.get(f"{address}.csv").text) == [f"k{n}" for n in range(7)]
    page = Elements(pages.get(link.removeprefix("/streams/six")).text)
    shown = [row["client"] for row in page.sections["part-aggregates-traffic"].table]
    assert shown == [f"k{n}" for n in range(7)]
    (file,) = (link for link in page.links if ".csv" in link)
    assert clients(pages.get(file.removeprefix("/streams/six")).text) == shown
    assert clients(pages.get(f"{address}.csv?order=n").text) == shown[::-1]
    # The other order is a link, also from a page of keys whose table a reader would have to open.
    rows = [window(4, f"m{n}", 1, level=1, slope_n=0.0, slope_sent=0.0) for n in range(OPEN_ROWS)]
    pages.lake.add("aggregates", rows)
    text = pages.get(f"{address}?order=sent").text
    assert TABLE.findall(text) == [(" open", str(OPEN_ROWS + 7))]
    assert "<strong>Fastest growing sent</strong>" in text
    orders = [link for link in Elements(text).links if "order=" in link and ".csv" not in link]
    assert orders == [f"/streams/six{address}?order=n"]
    assert "order: must be one of n, sent" in pages.get(f"{address}?order=pages", 422).text
    assert "order: must be empty" in pages.get("/results/frames/busy?order=n", 422).text


def test_small_tables_are_open_and_large_ones_closed(pages: Pages) -> None:
    for number in (OPEN_ROWS, OPEN_ROWS + 1):
        pages.lake.add("persistent_items", [PERSISTENT | {"client": f"c{number}", "low": 1}])
        first = number == OPEN_ROWS
        if first:
            more = [PERSISTENT | {"client": f"d{n}", "low": 1} for n in range(OPEN_ROWS - 1)]
            pages.lake.add("persistent_items", more)
        (found,) = TABLE.findall(pages.get("/results/persistence/regulars").text)
        assert found == (" open" if first else "", str(number))


def test_answer_is_above_the_table_and_the_guarantee_below(pages: Pages) -> None:
    row = {"hour": at(5), "block": "regulars", "window_end": at(6), "high": 4, "low": 3, "spell_id": "s"}
    pages.lake.add("persistent_items", [row | {"client": "c", "slots": "?111"}])
    text = pages.get("/results/persistence/regulars").text
    places = [
        text.index(part) for part in ("1 item of client", "<svg", "Figures: 1 row", "An item in 3 or more")
    ]
    assert places == sorted(places)


def test_columns_have_their_meanings(pages: Pages) -> None:
    row = {"hour": at(5), "block": "regulars", "window_end": at(6), "high": 4, "low": 3, "spell_id": "s"}
    pages.lake.add("persistent_items", [row | {"client": "c", "slots": "?111"}])
    text = pages.get("/results/persistence/regulars").text
    meaning = "coefficient of variation of the times between contacts"
    assert f'<th scope="col" title="{meaning}' in text
    assert f"<dt>gap_cv</dt><dd>{meaning}" in text
    assert '<th scope="col">client</th>' in text


def test_findings_of_an_item_are_one_entry_with_a_link_to_each(pages: Pages) -> None:
    item = {"stage": "persistence", "block": "regulars", "kind": "persistent_item", "item": "a"}
    pages.lake.find(
        *(finding(n, f"six: title {n}", finding_id=f"f{n}", **item) for n in range(4)),
        finding(1, "other", finding_id="o", **item | {"item": "b"}),
    )
    text = pages.get("").text
    assert "5 findings, the worst first" in text
    assert text.count('<li class="medium">') == 2
    assert "3 more findings of the same item" in text
    links = Elements(text).links
    assert {link.rpartition("/")[2] for link in links if "/findings/" in link} == {
        "f0",
        "f1",
        "f2",
        "f3",
        "o",
    }
    assert "six: title" not in text
    assert "<bdi>title 3</bdi>" in text


def test_hours_of_a_finding_reach_its_end(pages: Pages) -> None:
    item = {"stage": "frequency", "block": "often", "kind": "heavy_hitter", "item": "/"}
    pages.lake.find(
        # Reported first in hour 1, so since the end of its window; up to hour 5.
        finding(1, "x", finding_id="long", start_time=at(2), end_time=at(6), **item),
        finding(1, "y", finding_id="once", start_time=at(2), end_time=at(2), **item),
    )
    for name, hours in (
        ("long", "?from=2015-05-17T01%3A00&to=2015-05-17T06%3A00"),
        ("once", "/2015-05-17T01%3A00#history"),
    ):
        assert f"/streams/six/hours{hours}" in Elements(pages.get(f"/findings/{name}").text).links


def test_page_of_a_persistent_item_draws_its_slots(pages: Pages) -> None:
    item = {"stage": "persistence", "block": "regulars", "kind": "persistent_item", "item": "a"}
    evidence = ("in 2 to 3 of 4 slots", "?011")
    pages.lake.find(
        finding(4, "x", finding_id="x", start_time=at(5), end_time=at(5), evidence=evidence,
                exactness="2..3", **item)
    )  # fmt: skip
    text = pages.get("/findings/x").text
    assert "Each slot of 1 hour of the window up to 2015-05-17T05:00." in text
    assert "<svg" in text
    assert "?011" not in text
    assert "2 to 3 of 4 hours: the number is certainly in this range" in text
    assert "the 4 hours up to 2015-05-17T05:00" in text


@pytest.mark.parametrize(
    ("stage", "block", "table", "column", "last"),
    [
        ("persistence", "regulars", "persistent_items", "client", "2 to 3 of 4 hours"),
        ("frequency", "often", "frequencies", "path", "2 to 3 records"),
    ],
)
def test_item_that_has_left_has_ended_with_its_last_count(
    pages: Pages, stage: str, block: str, table: str, column: str, last: str
) -> None:
    of = {"stage": stage, "block": block, "kind": "item", "item": "a", "exactness": "guaranteed"}
    pages.lake.find(finding(2, "a is here", finding_id="x", start_time=at(3), end_time=at(5), **of))
    reports = [
        (2, "a", at(3), 1),
        (3, "a", at(3), 2),
        (4, "a", at(3), None),
        (3, "a", at(1), 7),
        (3, "b", at(3), 8),
    ]
    pages.lake.add(table, [
        {"hour": at(number), "block": block, "window_end": at(number + 1), column: item, "since": since,
         "low": low, "high": None if low is None else 3}
        for number, item, since, low in reports
    ])  # fmt: skip
    badge = '<span class="badge ended">ended</span>'
    page = pages.get("/findings/x").text
    assert f"<dt>last so</dt><dd>{last} in the window up to 2015-05-17T04:00</dd>" in page
    for address in ("/findings/x", "", f"/key?key={column}%3Da"):
        text = pages.get(address).text
        assert text.count(badge) == 1, address
        assert "to 2015-05-17T05:00; not in the last of them" in text


def test_only_findings_of_the_past_that_are_not_withdrawn_are_marked(pages: Pages) -> None:
    pages.lake.find(finding(4, "open", key="b", ongoing=True), finding(4, "over"))
    deliver(pages.lake, message("w", 4))
    page = pages.get("").text
    assert "gone w" in page
    assert "3 findings, 1 of them withdrawn, the worst first, withdrawn ones last." in page
    assert "2 findings, the worst first. " in pages.get("?state=new").text
    assert "1 withdrawn finding, the last one first. " in pages.get("?state=withdrawn").text
    assert re.findall(r'<span class="badge ended">ended</span>\s*<a href="[^"]*"><bdi>(.*?)</bdi>', page) == [
        "over"
    ]


@pytest.mark.parametrize("address", ["/key?key=a", "/hours/2015-05-17T04:00"])
def test_raw_lines_are_one_line_each_and_a_few_at_a_time(pages: Pages, address: str) -> None:
    line = {"hour": at(4), "event_time": at(4.5), "client": "a", "source_id": "s"}
    events = [
        line | {"source_line": n, "request": "GET / HTTP/1.1", "method": "GET", "ident": None}
        for n in range(RAW_ROWS + 5)
    ]
    pages.lake.add("events", events)
    text = pages.get(address).text
    page = Elements(text)
    (part,) = (of for name, of in page.sections.items() if name in ("events", "part-quality-events"))
    assert '<div class="scroll raw"' in text
    assert len(part.table) == RAW_ROWS
    assert part.table[0]["event_time"] == "2015-05-17T04:30:00"
    assert not {"method", "ident"} & {*part.table[0]}
    assert "Columns that add nothing are omitted: ident (empty), " in part.text
    assert "method (in request)" in part.text


def test_file_of_raw_lines_has_all_columns_and_rows(pages: Pages) -> None:
    line = {"hour": at(4), "event_time": at(4.5), "client": "a", "source_id": "s"}
    pages.lake.add("events", [line | {"source_line": n} for n in range(RAW_ROWS + 5)])
    page = Elements(pages.get("/key?key=a&page=2").text)
    assert len(page.sections["part-quality-events"].table) == 5
    (link,) = (link for link in page.links if "part-quality-events" in link)
    rows = [*csv.DictReader(io.StringIO(pages.get(link.removeprefix("/streams/six")).text))]
    assert len(rows) == RAW_ROWS + 5
    assert {"ident", "method", "file"} <= {*rows[0]}


def test_menu_has_the_titles_of_blocks(pages: Pages) -> None:
    titled = SIX.replace(
        "    measures: {n: count,", f"    title: What clients request{LONG}\n    measures: {{n: count,"
    )
    titled = titled.replace(
        "    within: 3 hours", '    title: "{client} <came> back, {matches} times"\n    within: 3 hours'
    )
    pages.lake.file.write_text(titled)
    page = pages.get("/results/aggregates/traffic").text
    assert re.search(
        r'title="aggregates: traffic" aria-current="page">What clients request and are sent by all of...</a>',
        page,
    )
    assert re.search(r'title="patterns: back">client &lt;came&gt; back</a>', page)
    assert re.search(r'title="frames: busy">busy</a>', page)
    assert f"<h1>What clients request{LONG} <small>(aggregates: traffic)</small></h1>" in page
