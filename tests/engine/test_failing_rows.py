"""Rows stored as evidence: the first ones, with texts cut by Spark as Python would cut them."""

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from tests.support.stream_factories import changed
from transom.engine.failing_rows import LONGEST, SAMPLE, sample_failing_rows
from transom.features.ingest import file_checks as contents
from transom.features.ingest.parsed_rows import ParsedRows
from transom.features.ingest.read_files import FileReadResult
from transom.ledger.check import Check
from transom.storage.store import Store
from transom.stream import parse


def shortened(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({len(text)} characters)"


def test_texts_are_cut_before_they_reach_the_driver(spark: SparkSession) -> None:
    texts = [None, "", "x" * LONGEST, "y" * (LONGEST + 1), "ü😀" * LONGEST]
    texts += ["z" * length for length in range(300, 330)]
    rows = [(len(texts) - n, text) for n, text in enumerate(texts)]
    frame = spark.createDataFrame(rows, "line int, `the text` string")
    cut = [{"the text": shortened(text), "line": number} for number, text in rows]
    by_line = sample_failing_rows(frame, ["the text", "line"], order=["line"])
    assert by_line == sorted(cut, key=lambda row: row["line"])[:SAMPLE]
    in_order = sorted(cut, key=lambda row: (row["the text"] is not None, row["the text"] or "", row["line"]))
    assert sample_failing_rows(frame, ["the text", "line"]) == in_order[:SAMPLE]


def test_events_of_equal_time_are_shown_in_line_order(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order in which Spark reads them does not matter."""
    moment = datetime(2015, 5, 17, tzinfo=UTC)
    rows = ParsedRows(Store(spark, "lake"), parse(changed()))
    at_once = [(line, moment) for line in range(2 * SAMPLE, 0, -1)]
    result = spark.createDataFrame(at_once, "source_line bigint, event_time timestamp")
    monkeypatch.setattr(rows, "events", lambda reads: result)
    shown = contents._sample(
        contents._Rules(rows.stream), rows, FileReadResult(), Check(contents.SCATTERED, "hours")
    )
    assert shown == [f"line {line}: event_time 2015-05-17T00:00:00" for line in range(1, SAMPLE + 1)]
