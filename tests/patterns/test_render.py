"""The report of a try on a pattern: the steps of its matches, or why it may have none."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from transom.features.patterns.render import print_episodes
from transom.storage.tables import Table
from transom.stream import Stream, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2024, 5, 6, 7, tzinfo=UTC)


def stream_of(**pattern: object) -> Stream:
    columns = {"at": {"type": "timestamp"}, "user": {}, "what": {}}
    spec = {"within": "2 hours", "carry": ["what"], **pattern}
    source = {"path": "a.log", "format": "json"}
    data = {"name": "doors", "source": source, "columns": columns, "time": {"column": "at"}, "key": ["user"]}
    return parse({**data, "patterns": {"guessed": spec}}, "doors.yaml")


FAILED = {"id": "failed", "where": "what = 'failed'", "times": 9}
ENTERED = {"id": "entered", "where": "what in ('in', 'back')"}


def events(root: str, texts: list[str]) -> None:
    moments = [START + timedelta(minutes=n) for n in range(len(texts))]
    columns: dict[str, Any] = {"event_time": moments, "user": ["ann"] * len(texts), "what": texts}
    write_deltalake(f"{root}/events", pa.table(columns))


@pytest.mark.parametrize(
    ("pattern", "reported"),
    [
        ({"steps": [FAILED, ENTERED]},
         "; events that its steps take: failed 0, entered 2; look at the `where` of failed"),
        ({"steps": [{**FAILED, "where": "what = 'Failed'"}, ENTERED]},
         "; events that its steps take: failed 3, entered 2"),
        ({"detector": "tests.support.some_detectors.entered", "carry": []}, " in 6 events"),
    ],
)  # fmt: skip
def test_pattern_without_matches_shows_the_events_of_each_step(
    spark: "SparkSession",
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    pattern: dict[str, Any],
    reported: str,
) -> None:
    events(str(tmp_path), ["Failed", "Failed", "in", "Failed", "back", "out"])
    print_episodes(stream_of(**pattern), str(tmp_path))
    assert capsys.readouterr().out == f"\nguessed: no episode{reported}\n"


def test_match_is_shown_with_the_time_of_each_step_and_its_lines(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = stream_of(steps=[FAILED, ENTERED])
    hour = {"hour": START, "block": "guessed", "user": "ann"}
    last = START + timedelta(minutes=30)
    episode = {
        **hour, "episode_id": "e", "state": "final", "start_time": START, "last_time": last, "matches": 1,
        "new_matches": 1, "detected_at": last, "level": 1,
    }  # fmt: skip
    match = {
        **hour, "match_id": "m", "level": 1, "first_time": START, "last_time": last, "detected_at": last,
        "steps": [{"id": "failed", "time": START, "count": 9}, {"id": "entered", "time": last, "count": 1}],
        "bindings": [], "kept_what": ["failed"] * 9 + ["in"],
        "records": [{"event_time": START, "source_id": "f", "source_line": n} for n in range(3, 13)],
    }  # fmt: skip
    for name, row, declared in (
        ("episodes", episode, {}),
        ("matches", match, {"kept": {"kept_what": "array<string>"}}),
    ):
        table = Table.load(name).declare(key={"user": "string"}, **declared)
        rows = pa.Table.from_pylist([row], schema=table.arrow_schema())
        write_deltalake(f"{tmp_path}/{name}", rows)
    print_episodes(stream, str(tmp_path))
    reported = capsys.readouterr().out.splitlines()
    assert "guessed: episodes, the first" in reported
    assert reported[-3].split() == ["user", "9", "failed", "entered", "what", "lines"]
    assert " ".join(reported[-1].split()) == (
        "ann 2024-05-06T07:00 2024-05-06T07:30 failed, in 3, 4, 5, 6, 7, 8, 9, 10, and 2 more"
    )
