"""Rows that are kept as evidence: the first ones, cut by Spark as Python would."""

from pyspark.sql import SparkSession

from transom.lake.samples import LONGEST, SAMPLE, sampled


def shortened(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({len(text)} characters)"


def test_texts_are_cut_before_the_driver_has_them(spark: SparkSession) -> None:
    texts = [None, "", "x" * LONGEST, "y" * (LONGEST + 1), "ü😀" * LONGEST]
    texts += ["z" * length for length in range(300, 330)]
    rows = [(len(texts) - n, text) for n, text in enumerate(texts)]
    frame = spark.createDataFrame(rows, "line int, `the text` string")
    cut = [{"the text": shortened(text), "line": number} for number, text in rows]
    by_line = sampled(frame, ["the text", "line"], order=["line"])
    assert by_line == sorted(cut, key=lambda row: row["line"])[:SAMPLE]
    in_order = sorted(cut, key=lambda row: (row["the text"] is not None, row["the text"] or "", row["line"]))
    assert sampled(frame, ["the text", "line"]) == in_order[:SAMPLE]
