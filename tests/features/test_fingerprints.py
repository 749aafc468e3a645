"""Which fields of a stream's file determine which tables."""

import json
from typing import Any

import pytest

from tests.support.stream_factories import ACCEPT, SUPPRESS, base, changed
from transom.stream import Stream, parse


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "x"},
        {"owner": "x"},
        {"source__path": "elsewhere/{host}/%Y-%m-%d.%H.json"},
        {"source__arrival_delay": "1 hour"},
        {"source__expected_files": 3},
        {"checks": {"x": {"stage": "ingest", "every": "ok"}}},
        {"waivers": [ACCEPT]},
        {"suppress": [SUPPRESS]},
        {"repair_window": "9 days"},
        {"chunk": "9 days"},
        {"schedule": False},
        {"columns__took": {"from": "ms", "type": "number", "resolution": "0.0010", "unit": "s"}},
        {"aggregates__load__title": "x"},
        {"where": "true", "aggregates__load__where": None},
    ],
)
def test_field_without_influence_on_rows_changes_no_fingerprint(changes: dict[str, Any]) -> None:
    before, after = parse(base()), parse(changed(**changes))
    assert before.ingest_shape() == after.ingest_shape()
    assert before.fingerprint("granules", "load") == after.fingerprint("granules", "load")
    assert before.fingerprint("aggregates", "load") == after.fingerprint("aggregates", "load")


@pytest.mark.parametrize(("capture", "text"), [("host", {}), ("at", {"time_captures": ["at"]})])
def test_time_from_the_path_has_another_fingerprint_than_time_from_a_field(
    capture: str, text: dict[str, list[str]]
) -> None:
    """The fingerprint of any other stream is what it was before times could come from the path."""
    shape = json.loads(parse(changed(source__path=f"in/{{{capture}}}/%Y-%m-%d.%H.json")).ingest_shape())
    assert {name: value for name, value in shape.items() if name == "time_captures"} == text
    assert shape["captures"] == [capture]


def test_order_of_columns_changes_no_fingerprint() -> None:
    data = base()
    turned = data | {"columns": dict(reversed(data["columns"].items()))}
    assert list(turned["columns"]) != list(data["columns"])
    assert parse(turned).ingest_shape() == parse(data).ingest_shape()


TWO_LEVELS = {"aggregates__load__levels": "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR"}


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"source__path": "in/{site}/%Y-%m-%d.%H.json"}, {"ingest"}),
        ({"source__path": "in/{host}/%Y-%m-%d.*.json"}, {"ingest"}),
        ({"source__zone": "Europe/Berlin"}, {"ingest"}),
        ({"source__event_time_range": {"before": "2 days"}}, {"ingest"}),
        ({"source__format": "csv"}, {"ingest"}),
        ({"columns__more": "x"}, {"ingest"}),
        ({"columns__user": "user"}, {"ingest"}),
        ({"time__format": "epoch"}, {"ingest"}),
        ({"time__column": ["day", "at"]}, {"ingest"}),
        ({"time": {"lines": "1 s", "from": "name"}}, {"ingest"}),
        ({"extra_fields": "keep"}, {"ingest"}),
        ({"columns__x": {"is": "status"}}, {"ingest"}),
        ({"unique": ["user"]}, {"ingest"}),
        ({"time": {"column": "at", "interval": "5 minutes", "on_duplicate_time": "last"}}, {"ingest"}),
        (
            {"columns__took": {"from": "ms", "type": "number", "resolution": 0.01}},
            {"ingest", "granules", "reports"},
        ),
        ({"aggregates__load__where": "ok"}, {"granules", "item_granules"}),
        ({"key": ["host"]}, {"granules", "reports", "item_granules", "recurring"}),
        ({"aggregates__load__measures__n": "sum(took)"}, {"granules", "reports"}),
        ({"aggregates__load__levels": "RANGES 2 HOURS SLIDES 5 MINUTES"}, {"reports", "recurring"}),
        (
            {"aggregates__load__levels": "RANGES 1 HOUR SLIDES 1 MINUTE"},
            {"granules", "reports", "item_granules", "recurring"},
        ),
        ({"aggregates__load__aging": [2]}, {"reports"}),
        ({"aggregates__load__fit": "5 minutes"}, {"reports"}),
        # Granules as long as the unit.
        ({"aggregates__load__fit": "1 minute"}, {"granules", "reports"}),
        (
            {"aggregates__load__recurring": ["status"], **TWO_LEVELS},
            {"granules", "reports", "item_granules", "recurring"},
        ),
    ],
)
def test_field_of_a_table_changes_its_fingerprint_alone(changes: dict[str, Any], parts: set[str]) -> None:
    def shapes(stream: Stream) -> dict[str, str]:
        return {
            "ingest": stream.ingest_shape(),
            "granules": stream.fingerprint("granules", "load"),
            "reports": stream.fingerprint("aggregates", "load"),
            "item_granules": stream.fingerprint("item_granules", "load"),
            "recurring": stream.fingerprint("recurring", "load"),
        }

    before, after = shapes(parse(base())), shapes(parse(changed(**changes)))
    assert {part for part in before if before[part] != after[part]} == parts


@pytest.mark.parametrize("more", [{"value": "sum"}, {"missing": "zero"}, {"unit": "1 minute"}])
def test_every_field_of_a_line_fit_changes_the_fingerprint_of_reports(more: dict[str, str]) -> None:
    fit = {"unit": "5 minutes", "value": "mean", "missing": "last"}
    one, other = (parse(changed(aggregates__load__fit=text)) for text in (fit, fit | more))
    assert one.fingerprint("aggregates", "load") != other.fingerprint("aggregates", "load")
    assert one.fingerprint("aggregates", "load") == parse(
        changed(aggregates__load__fit="5 minutes")
    ).fingerprint("aggregates", "load")


def test_spelling_of_a_rule_changes_no_fingerprint() -> None:
    def shape(**changes: Any) -> str:
        return parse(changed(**changes)).ingest_shape()

    assert shape(unique=["user", "host"]) == shape(unique={"columns": ["host", "user"], "prefer": "first"})
    assert shape(time={"column": "at", "interval": "5 minutes", "on_duplicate_time": "keep"}) == shape()
    assert shape(columns__x={"is": "status+1"}) == shape(columns__x={"is": "(status + 1)", "unit": "B"})
    assert shape(unique=["user"]) != shape(unique={"columns": ["user"], "prefer": "longest status"})
    assert shape(columns__x={"is": "status+1"}) != shape(columns__x={"is": "status+2"})


def test_spaces_of_a_condition_change_no_fingerprint() -> None:
    one = parse(changed(aggregates__load__where="status=1 and ok")).fingerprint("granules", "load")
    assert one == parse(changed(aggregates__load__where="status = 1 AND (ok)")).fingerprint(
        "granules", "load"
    )
    assert '"where":"((`status` = 1L) AND `ok`)"' in one


def test_fingerprints_are_canonical_json() -> None:
    shape = parse(base()).fingerprint("granules", "load")
    assert shape == (
        '{"base":300000000,"key":["user"],"measures":{"n":"count","slow":"max(took)"},'
        '"types":{"took":["number","0.001"],"user":["string","1"]},"where":null}'
    )
    assert json.loads(parse(base()).ingest_shape())["name"] == {
        "after": 3600000000,
        "before": 86400000000,
        "unit": "hour",
        "zone": "UTC",
    }
