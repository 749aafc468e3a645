"""Keys as a person types them: the column of a value without one."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.viewed_lake import ViewedLake, at, between, finding, window
from transom.views.open_stream import OpenStream
from transom.views.typed_key import TypedKey, typed_key
from transom.views.view import view_of


def typed(lake: ViewedLake, text: str, *subject: str) -> TypedKey:
    return typed_key(OpenStream(lake.uri, lake.stream), text, between(0, 6), subject)


def add_event(lake: ViewedLake, **columns: Any) -> None:
    of = {"hour": at(1), "event_time": at(1.5), "source_id": "s", "source_line": 1}
    lake.add("events", [of | columns])


def test_named_columns_are_the_key_without_a_notice(lake: ViewedLake) -> None:
    assert typed(lake, "client=a=b, path=/") == TypedKey({"client": "a=b", "path": "/"})
    assert typed(lake, "client=a, b=c, path=/") == TypedKey({"client": "a, b=c", "path": "/"})
    with pytest.raises(ValueError, match="nearest: client"):
        typed(lake, "clint=a")
    with pytest.raises(ValueError, match="status must be the text of a value"):
        typed(lake, "status=many")


def test_value_without_anything_known_is_of_the_first_column(lake: ViewedLake) -> None:
    assert typed(lake, "/p") == TypedKey(
        {"client": "/p"},
        ("Read as client=/p, as nothing is known of it in these hours. For another column, type path=/p.",),
    )


@pytest.mark.parametrize(
    "known",
    [
        lambda lake: lake.find(finding(1, "one", stage="frequency", block="often", item="/p")),
        lambda lake: add_event(lake, client="a", path="/p"),
        lambda lake: lake.add(
            "frequencies", [{"block": "often", "path": "/p", "hour": at(1), "window_end": at(2), "low": 1}]
        ),
    ],
    ids=["finding", "event", "result"],
)
def test_value_is_of_the_first_column_in_which_something_is_known(
    lake: ViewedLake, known: Callable[[ViewedLake], None]
) -> None:
    known(lake)
    found = typed(lake, "/p")
    assert found.columns == {"path": "/p"}
    assert found.notices == (
        "Read as path=/p, the first column with something of it in these hours. For another column, type "
        "client=/p.",
    )
    assert typed_key(OpenStream(lake.uri, lake.stream), "/p", between(3, 6)).columns == {"client": "/p"}


def test_findings_count_before_events_and_events_before_results(lake: ViewedLake) -> None:
    lake.add("aggregates", [window(1, "/p", 3)])
    assert typed(lake, "/p").columns == {"client": "/p"}
    add_event(lake, client="a", path="/p")
    assert typed(lake, "/p").columns == {"path": "/p"}
    add_event(lake, client="/p", path="/")
    assert typed(lake, "/p").columns == {"client": "/p"}
    lake.find(finding(1, "one", stage="frequency", block="often", item="/p"))
    assert typed(lake, "/p").columns == {"path": "/p"}


def test_given_columns_replace_those_of_the_stream(lake: ViewedLake) -> None:
    add_event(lake, client="a", path="/", status=200)
    assert typed(lake, "/", "client") == TypedKey({"client": "/"})
    assert typed(lake, "200", "client", "status").columns == {"status": "200"}


def test_column_that_cannot_have_the_text_is_no_choice(lake: ViewedLake) -> None:
    assert typed(lake, "many", "status", "path") == TypedKey({"path": "many"})
    with pytest.raises(ValueError, match="status must be the text of a value"):
        typed(lake, "many", "status")


def test_report_of_a_value_shows_its_column(lake: ViewedLake) -> None:
    lake.find(finding(1, "one", stage="frequency", block="often", item="/p"))
    view = view_of(lake.uri, lake.stream, key="/p")
    assert view.key == {"path": "/p"}
    assert [item.title for item in view.findings] == ["one"]
    assert view.notices[0].startswith("Read as path=/p,")
