"""Wrong addresses, hostile texts and broken lakes: a page with the rule and its status, no stack trace."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.asgi import request
from tests.support.elements import Elements
from tests.support.hostile import HOSTILE, assert_harmless, fill
from tests.web.conftest import Pages, made

ADDRESSES = ("", "/hours", "/quality", "/key?key=c", "/results/aggregates/traffic", "/findings.csv")
OTHERS = ("link", "script", "form", "label", "input", "select", "option", "button")
"""The elements that pages have besides those of a report."""


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        ("from=2015-05-17T03:00&to=2015-05-17T01:00", "from: must be before to"),
        ("from=2015-05-17T03:30&to=2015-05-17T05:00", "from: must be on the hour"),
        ("to=yesterday", "to: must be a time such as 2015-05-17T10:00"),
        ("from=2015-05-17T03:00&to=2015-05-17T03:00", "from: must be before to"),
        ("from=9999-12-31T23:00", "must be before to"),
        ("from=0001-01-01T00:00%2B14:00", "from: must be a time"),
        ("page=0", "page: "),
        ("page=x", "page: "),
        ("page=2001", "page: Input should be less than or equal to 2000"),
        ("page=99999999999999999999", "page: "),
        ("key=clint%3Da", "nearest: client"),
        ("key.clint=a", "nearest: client"),
        ("key.status=many", "key: status must be the text of a value of type"),
    ],
)
@pytest.mark.parametrize("address", ["", "/results/aggregates/traffic"])
def test_wrong_parameter(shared: Pages, address: str, query: str, rule: str) -> None:
    assert rule in Elements(shared.get(f"{address}?{query}", 422).text).text


@pytest.mark.parametrize("query", ["state=old", "severity=worst"])
def test_wrong_filter(shared: Pages, query: str) -> None:
    assert "must be one of" in shared.get(f"?{query}", 422).text


@pytest.mark.parametrize("address", ["/findings", "/quality", "/key", "/results/aggregates/traffic"])
def test_files_of_rows_have_a_longest_interval(shared: Pages, address: str) -> None:
    text = shared.get(f"{address}.csv?key=c&from=2012-01-01T00:00&to=2016-01-01T00:00", 422).text
    assert "from and to: must be at most 366 days apart; got [2012-01-01T00:00, 2016-01-01T00:00)" in text
    shared.get(f"{address.replace('/findings', '')}?key=c&from=2015-01-01T00:00&to=2016-01-01T00:00")


def test_grid_of_all_times(shared: Pages) -> None:
    text = shared.get("/hours?from=0001-01-01T00:00&to=9999-01-01T00:00").text
    assert len(text) < 1_000_000


@pytest.mark.parametrize(
    "address",
    [
        "/findings/nothing",
        "/findings/a/b/../c",
        "/results/aggregates/nothing",
        "/results/nothing/traffic",
        "/results/aggregates",
        "/nothing",
        "/hours/2030-01-01T00:00",
        "/quality.csv?part=nothing",
    ],
)
def test_unknown_page(shared: Pages, address: str) -> None:
    assert "<h1>" in shared.get(address, 404).text


@pytest.mark.parametrize("hour", ["noon", "2015-05-17T01:30", "9999-12-31T23:00", "0001-01-01T00:00+14:00"])
def test_wrong_hour(shared: Pages, hour: str) -> None:
    response = request(shared.app, f"/streams/six/hours/{quote(hour)}")
    assert response.status_code in (404, 422)
    assert "Traceback" not in response.text


def test_unknown_stream(shared: Pages) -> None:
    response = request(shared.app, "/streams/nothing")
    assert response.status_code == 404
    assert "No stream file declares the stream nothing" in response.text


@pytest.mark.parametrize("text", [of.replace("\ud800", "\ufffd")[:20_000] for of in HOSTILE])
@pytest.mark.parametrize(
    "address",
    [
        "/streams/{}",
        "/streams/six/findings/{}",
        "/streams/six/results/{}/x",
        "/streams/six/results/aggregates/{}",
        "/streams/six/hours/{}",
        "/streams/six?from={}",
        "/streams/six?kind={}",
        "/streams/six?block={}",
        "/streams/six?state={}",
        "/streams/six?page={}",
        "/streams/six?key={}",
        "/streams/six?key.{}=x",
        "/streams/six/key?key.client={}",
        "/streams/six/key.csv?key.client={}&part={}",
        "/static/{}",
        "/{}",
    ],
)
def test_hostile_address(shared: Pages, address: str, text: str) -> None:
    response = request(shared.app, address.replace("{}", quote(text, safe="")))
    assert response.status_code in (200, 404, 422)
    if response.headers["content-type"].startswith("text/html"):
        assert_harmless(response.text, OTHERS)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    with pytest.MonkeyPatch.context() as patch:
        pages = made(tmp_path_factory.mktemp("hostile"), patch)
        fill(pages.lake)
        yield pages


def test_hostile_texts_of_a_log_are_text(hostile: Pages) -> None:
    start, seen = ["", "/quality", "/results/persistence/regulars", "/results/frequency/often"], set[str]()
    waiting = [*start, "/results/aggregates/traffic", "/hours"]
    while waiting:
        address = waiting.pop()
        seen.add(address)
        response = request(hostile.app, f"/streams/six{address}")
        assert response.status_code == 200, (address, response.text[-400:])
        if not response.headers["content-type"].startswith("text/html"):
            continue
        assert_harmless(response.text, OTHERS)
        # The pages of findings and keys, to which they lead.
        found = [link.removeprefix("/streams/six") for link in Elements(response.text).links]
        waiting += [
            link for link in {*found} - seen - {*waiting}
            if link.startswith(("/findings/", "/key?")) and "part=" not in link
        ]  # fmt: skip
    assert len({of.partition("?")[0] for of in seen if of.startswith("/findings/")}) == len(HOSTILE)
    assert sum(address.startswith("/key?") for address in seen) >= len(HOSTILE) - 3


@pytest.mark.parametrize("table", ["findings", "aggregates", "events", "checks", "rejected", "runs"])
def test_a_missing_table(pages: Pages, table: str) -> None:
    shutil.rmtree(Path(pages.lake.root) / table, ignore_errors=True)
    for address in ADDRESSES:
        pages.get(address)


@pytest.mark.parametrize("table", ["findings", "aggregates"])
def test_a_table_that_cannot_be_read(pages: Pages, table: str) -> None:
    fill(pages.lake)
    for file in (Path(pages.lake.root) / table).rglob("*.parquet"):
        file.write_bytes(b"junk")
    responses = [request(pages.app, f"/streams/six{address}") for address in ADDRESSES]
    assert {response.status_code for response in responses} <= {200, 503}
    assert any("cannot be read" in response.text for response in responses)


def test_a_damaged_ledger(pages: Pages) -> None:
    for file in (Path(pages.lake.root) / "ledger" / "_delta_log").glob("*.json"):
        file.write_bytes(b"junk")
    for address in ADDRESSES:
        assert request(pages.app, f"/streams/six{address}").status_code == 503
    assert request(pages.app, "/").status_code == 200


def test_a_bug_shows_no_stack_trace(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("transom.web.routes.findings_of", broken)
    text = pages.get("", 500).text
    assert "secret" not in text
    assert "log of Airflow" in text
