"""Each page shows what the tables have; filters, pages and downloads agree with them."""

import csv
import html
import io
import re
import threading
import time
from collections.abc import Callable, Iterable

import pytest
from fastapi import Response

from tests.support.asgi import request
from tests.support.elements import Elements
from tests.support.viewed_lake import PERSISTENT, SIX, at, finding, window
from tests.web.conftest import Pages
from transom.charts.section import MAX_ROWS
from transom.core.intervals import format_hour
from transom.views import stream_hours
from transom.web import routes
from transom.web.open_streams import OpenStreams
from transom.web.summary import Summary

SEVERITIES = ("high", "medium", "low")
MANY = 120
CLIENTS = 250


@pytest.fixture(scope="module")
def filled(shared: Pages) -> Pages:
    lake = shared.lake
    lake.find(
        *(
            finding(
                n % 6,
                f"finding {n}",
                finding_id=f"f{n}",
                severity=SEVERITIES[n % 3],
                kind="episode" if n % 2 else "frame",
                block="back" if n % 2 else "busy",
                stage="patterns" if n % 2 else "frames",
                key=f"10.0.0.{n % 4}",
                first_hour=at(0),
                evidence=(f"evidence {n}",),
            )
            for n in range(MANY)
        )
    )
    lake.add("aggregates", [window(4, f"c{n}", n + 1, level=1) for n in range(5)])
    lake.add("persistent_items", [{**PERSISTENT, "client": f"c{n}", "low": n + 1} for n in range(CLIENTS)])
    line = {"hour": at(1), "source_id": "s", "reason": "short"}
    lake.add("rejected", [{**line, "source_line": n, "raw": f"line {n}"} for n in range(7)])
    lake.ran("aggregates", 0, 6, rows=5)
    return shared


def rows_of(text: str) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(text))]


def hours(start: int, end: int) -> str:
    return f"from={format_hour(at(start))}&to={format_hour(at(end))}"


def test_findings_of_an_interval_in_pages(filled: Pages) -> None:
    seen: list[str] = []
    for number in range(1, 4):
        links = Elements(filled.get(f"?page={number}").text).links
        seen += [link.rpartition("/")[2] for link in links if "/findings/" in link]
    assert sorted(seen) == sorted(f"f{n}" for n in range(MANY))
    assert [SEVERITIES[int(name[1:]) % 3] for name in seen] == sorted(
        (SEVERITIES[n % 3] for n in range(MANY)), key=SEVERITIES.index
    )
    assert f"{MANY} findings" in filled.get("").text
    second = filled.get("?severity=&page=2")
    assert "Page 2 of 3" in second.text
    others = [link for link in Elements(second.text).links if "page=" in link]
    assert others == ["?severity=&page=1", "?severity=&page=3"]
    assert not [link for link in Elements(filled.get("?page=9").text).links if "/findings/" in link]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("severity=high", lambda n: n % 3 == 0),
        ("kind=frame", lambda n: n % 2 == 0),
        ("block=back&severity=low", lambda n: n % 2 and n % 3 == 2),
        ("key=10.0.0.1", lambda n: n % 4 == 1),
        ("key.client=10.0.0.2", lambda n: n % 4 == 2),
        ("state=new", lambda n: True),
        ("state=withdrawn", lambda n: False),
        ("state=&severity=&kind=&block=&key=", lambda n: True),
        (f"state=earlier&{hours(1, 6)}", lambda n: n % 6 >= 1),
        (hours(5, 6), lambda n: n % 6 == 5),
        ("kind=nothing", lambda n: False),
    ],
)
def test_filters_of_findings(filled: Pages, query: str, kept: Callable[[int], bool]) -> None:
    expected = {f"f{n}" for n in range(MANY) if kept(n)}
    rows = rows_of(filled.get(f"/findings.csv?{query}").text)
    assert {row["finding_id"] for row in rows} == expected
    page = Elements(filled.get(f"?{query}").text)
    assert f"{len(expected)} finding" in page.text
    assert {
        link.rpartition("/")[2].partition("?")[0] for link in page.links if "/findings/" in link
    } <= expected


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("", "severity=high&key.client=10.0.0.1"),
        ("/key", "key.client=10.0.0.1"),
        ("/key", "key=10.0.0.1"),
        ("/results/aggregates/traffic", "order=n"),
        ("/quality", "check=rows_counted"),
        ("/hours", ""),
    ],
)
def test_latest_hours_keep_the_key_the_order_and_the_filters(filled: Pages, path: str, kept: str) -> None:
    text = filled.get(f"{path}?{hours(1, 3)}&{kept}&page=2").text
    (latest,) = re.findall(r'<a href="([^"]*)">Latest hours</a>', text)
    assert html.unescape(latest) == f"?{kept}"
    assert "2015-05-17T00:00 to 2015-05-17T06:00" in filled.get(f"{path}?{kept}").text


def test_a_finding_leads_to_its_key_in_all_hours_of_its_evidence(pages: Pages) -> None:
    of = {"stage": "persistence", "block": "regulars", "kind": "persistent_item", "item": "c1"}
    pages.lake.find(finding(5, "regular", finding_id="r", **of))
    page = Elements(pages.get("/findings/r").text)
    assert "client=c1, in all hours of the evidence: 2015-05-17T01:00 to 2015-05-17T06:00" in page.text
    (link,) = [link for link in page.links if "key.client" in link]
    assert link == "/streams/six/key?key.client=c1&from=2015-05-17T01%3A00&to=2015-05-17T06%3A00"


def test_a_finding_of_one_hour_leads_to_the_history_of_this_hour(pages: Pages) -> None:
    pages.lake.find(finding(5, "missing", finding_id="m", kind="expected", severity="medium"))
    links = Elements(pages.get("/findings/m").text).links
    assert "/streams/six/hours/2015-05-17T05%3A00#history" in links


def test_a_finding_with_its_links(filled: Pages) -> None:
    page = Elements(filled.get("/findings/f7").text)
    assert "finding 7" in page.text
    assert "evidence 7" in page.text
    assert any("/results/patterns/back?" in link for link in page.links)
    assert any("/key?" in link and "key.client=10.0.0.3" in link for link in page.links)
    assert sum("/findings/f" in link for link in page.links) == 20
    for link in page.links:
        if link.startswith("/streams/six"):
            filled.get(link.removeprefix("/streams/six"))


def test_key_of_a_finding_has_a_value_in_quotes_that_looks_like_a_further_column(pages: Pages) -> None:
    text = pages.lake.file.read_text()
    pages.lake.file.write_text(text.replace("  traffic:\n", "  traffic:\n    key: [client, path]\n"))
    key = 'client="a, path=b", path=c'
    of_block = {"stage": "aggregates", "kind": "alert", "block": "traffic"}
    pages.lake.find(finding(1, "quoted", finding_id="quoted", key=key, **of_block))
    page = Elements(pages.get("/findings/quoted").text)
    assert key in page.text
    assert any("key.client=a%2C+path%3Db&key.path=c" in link for link in page.links)


def test_results_of_a_block_in_pages_and_as_a_file(filled: Pages) -> None:
    expected = {f"c{n}": str(n + 1) for n in range(CLIENTS)}
    rows = rows_of(filled.get("/results/persistence/regulars.csv").text)
    assert {row["client"]: row["low"] for row in rows} == expected
    seen: list[str] = []
    for number in (1, 2):
        cells = Elements(filled.get(f"/results/persistence/regulars?page={number}").text).cells
        seen += [cell for cell in cells if cell in expected]
    assert sorted(seen) == sorted(expected)
    assert f"Page 1 of {-(-CLIENTS // MAX_ROWS)}" in filled.get("/results/persistence/regulars").text


def test_title_is_a_text(filled: Pages) -> None:
    for address, title in (
        ("/results/aggregates/traffic", "traffic (aggregates) · six"),
        ("/key?key=%3C%2Ftitle%3E%3Cb%3E", "Key client &lt;/title&gt;&lt;b&gt; · six"),
    ):
        assert f"<title>{title}</title>" in filled.get(address).text


def test_a_file_is_sent_in_few_chunks(filled: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    text = filled.get("/results/persistence/regulars.csv").text
    made: list[bytes] = []

    def response(chunks: Iterable[bytes], **_: object) -> Response:
        made.extend(chunks)
        return Response()

    monkeypatch.setattr(routes, "StreamingResponse", response)
    filled.get("/results/persistence/regulars.csv")
    assert len(made) == 1
    monkeypatch.setattr(routes, "CHUNK", 100)
    filled.get("/results/persistence/regulars.csv")
    assert len(made[1:]) == -(-(CLIENTS + 1) // 100)
    assert b"".join(made[1:]).decode() == text


def test_results_of_a_key(filled: Pages) -> None:
    of_key = Elements(filled.get("/results/aggregates/traffic?key=c3").text)
    assert "c3" in of_key.cells
    assert "c2" not in of_key.cells
    assert rows_of(filled.get("/results/aggregates/traffic.csv?key.client=c3").text)[0]["n"] == "4"


def test_a_value_without_a_column_is_looked_up_in_all_of_them(pages: Pages) -> None:
    pages.lake.find(finding(1, "often", finding_id="p", stage="frequency", block="often", item="/p"))
    read_as = "Read as path=/p, the first column with something of it in these hours."
    for address, heading in (("/key", "Key path /p"), ("", "Findings")):
        page = Elements(pages.get(f"{address}?key=/p").text)
        assert heading in page.text
        assert read_as in page.text
        assert "/streams/six/findings/p" in page.links
    # A block has its own columns only.
    for block, column in (("aggregates/traffic", "client"), ("frequency/often", "path")):
        text = pages.get(f"/results/{block}?key=/p").text
        assert f'value="{column}=/p"' in text
        assert "Read as" not in text


@pytest.mark.parametrize("block", ["patterns/back", "frames/busy", "fills/before", "frequency/often"])
def test_a_block_without_rows_says_so(filled: Pages, block: str) -> None:
    assert "No " in Elements(filled.get(f"/results/{block}").text).text
    response = request(filled.app, f"/streams/six/results/{block}.csv")
    assert response.status_code == 404 or len(response.text.splitlines()) == 1


def test_quality_and_its_files(filled: Pages) -> None:
    page = Elements(filled.get("/quality").text)
    assert "7 lines" in page.text
    files = [link.removeprefix("/streams/six") for link in page.links if "quality.csv" in link]
    assert files
    rows = [row for of in files for row in rows_of(filled.get(of).text)]
    assert {row["raw"] for row in rows if "raw" in row} >= {"line 0"}


def test_page_of_a_key(filled: Pages) -> None:
    page = Elements(filled.get("/key?key=c4").text)
    assert "5" in page.cells
    assert {link.partition("?")[0] for link in page.links if "key.csv" in link} == {"/streams/six/key.csv"}
    page = Elements(filled.get("/key?key.client=10.0.0.1").text)
    assert f"{MANY // 4} findings" in page.text
    assert "Type a key" in filled.get("/key").text


def test_grid_and_hours(filled: Pages) -> None:
    page = Elements(filled.get("/hours").text)
    of_hours = [link for link in page.links if "/hours/2015-05-17T" in link]
    assert len(of_hours) == 6 * len(filled.lake.stream.stages)
    assert filled.get("/hours.csv?part=counts").text.startswith("stage,")
    hour = Elements(filled.get("/hours/2015-05-17T02:00").text)
    assert "Run these hours" in hour.text
    assert "aggregates" in hour.text
    assert "No run has requested this hour" in filled.get("/hours/2015-06-17T02:00", 404).text


def test_grid_of_months_leads_to_days(filled: Pages) -> None:
    page = Elements(filled.get("/hours?from=2014-01-01T00:00&to=2016-01-01T00:00").text)
    grids = [link for link in page.links if "/hours?from=2015-05-01" in link]
    assert len(grids) == len(filled.lake.stream.stages)


def test_links_keep_the_hours_that_were_given(filled: Pages) -> None:
    page = Elements(filled.get(f"?{hours(1, 3)}").text)
    assert all(
        "from=2015-05-17T01%3A00" in link
        for link in page.links
        if link.startswith("/streams/six/") and "/findings" not in link
    )
    assert not [link for link in Elements(filled.get("").text).links if "from=" in link]


def test_list_of_streams_counts_findings(filled: Pages) -> None:
    filled.get("/hours.csv")  # waits for the stale hours
    page = Elements(request(filled.app, "/").text)
    assert "40 high findings" in page.text
    assert "6 hours: 6 stale" in page.text
    assert "6 of 6 hours up to 2015-05-17T06:00 need attention; the newest events are of" in page.text
    (high,) = (link for link in page.links if "severity=high" in link)
    assert "40 findings" in filled.get(high.removeprefix("/streams/six")).text
    assert "from=" in high


def test_list_of_streams_waits_for_stale_hours(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    # A busy machine takes longer than a reader would wait.
    monkeypatch.setattr(routes, "PATIENCE", 60.0)
    assert "Which hours are stale is still being looked up" not in request(pages.app, "/").text


def test_list_of_streams_waits_once_for_all_streams(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    (pages.lake.file.parent / "other.yaml").write_text(SIX.replace("name: six", "name: other"))
    waits: list[float] = []

    def summary(streams: OpenStreams, name: str, patience: float) -> Summary:
        waits.append(patience)
        time.sleep(0.01 + patience)
        return Summary(name)

    monkeypatch.setattr(routes, "summary_of", summary)
    request(pages.app, "/")
    first, second = waits
    assert 0 < first <= routes.PATIENCE
    assert second == 0


def test_list_of_streams_does_not_wait_long_for_stale_hours(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    compute = stream_hours.staleness_of
    monkeypatch.setattr(stream_hours, "staleness_of", lambda *of: go.wait(60) and compute(*of))
    try:
        assert "Which hours are stale is still being looked up" in request(pages.app, "/").text
    finally:
        go.set()


def test_an_edited_stream_file_is_read_again(pages: Pages) -> None:
    pages.get("/results/aggregates/traffic")
    pages.get("/results/aggregates/visits", 404)
    pages.lake.file.write_text(SIX.replace("  traffic:", "  visits:"))
    pages.get("/results/aggregates/visits")
    pages.lake.file.write_text("name: six\nkey: 1\n")
    assert "key" in pages.get("", 503).text
    pages.lake.file.write_text(SIX)
    pages.get("/results/aggregates/traffic")


def test_silenced_findings_are_shown_and_counted(pages: Pages) -> None:
    pages.lake.find(finding(1, "one", finding_id="a", key="x"), finding(2, "two", finding_id="b", key="y"))
    silence = "silence: [{key: x, who: ann, why: known, until: 9999-12-31}]"
    assert "no message is sent" not in pages.get("").text
    pages.lake.file.write_text(f"{SIX}{silence}\n")
    page = pages.get("").text
    assert "2 findings, the worst first" in page
    assert "Of 1 finding of these hours no message is sent" in page
    assert "no message is sent" not in pages.get(f"?{hours(3, 5)}").text


def test_a_run_that_publishes_is_seen(pages: Pages) -> None:
    assert "2015-05-17T06:00" in pages.get("").text
    pages.lake.publish([6, 7], run="b")
    assert "2015-05-17T08:00" in pages.get("").text


def test_a_stream_without_a_run(
    pages: Pages, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path_factory.mktemp("empty")))
    assert "no run of six is in this lake" in pages.get("").text
    assert "no run of six" in pages.get("/hours").text


def test_script_does_not_replace_functions_of_the_browser(filled: Pages) -> None:
    script = request(filled.app, "/static/page.js").text
    declared = set(re.findall(r"^(?:async )?function (\w+)|^(?:const|let|var) (\w+)", script, re.MULTILINE))
    names = {name for pair in declared for name in pair if name}
    of_window = (
        "alert blur close confirm fetch find focus moveBy moveTo name open parent print prompt scroll stop"
    )
    assert "run" in names
    assert not names & {
        *of_window.split(),
        "history",
        "length",
        "location",
        "origin",
        "self",
        "status",
        "top",
    }


def test_two_streams_are_apart(pages: Pages) -> None:
    (pages.lake.file.parent / "other.yaml").write_text(SIX.replace("name: six", "name: other"))
    text = request(pages.app, "/").text
    assert "/streams/six" in text
    assert "no run of other is in this lake" in text
