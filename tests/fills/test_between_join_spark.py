"""The between-join on DataFrames, compared with Spark's own join by the same condition."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

import math
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.stream_factories import exactly
from transom.features.fills import between_join as between
from transom.features.fills.between_join import between_join

MORNING = datetime(2024, 5, 1, 6, tzinfo=UTC)
AGGREGATES = {
    "many": "count", "total": "sum(size)", "mean": "mean(size)", "least": "min(size)", "most": "max(took)",
}  # fmt: skip


def minutes(number: int | None) -> datetime | None:
    return None if number is None else MORNING + timedelta(minutes=number)


FRAMES = "shape string, id int, host string, start timestamp, end timestamp"
ROWS = "shape string, host string, at timestamp, size int, took double"
ON = ("start", "end", "at")
KEY = ["shape", "host"]


@pytest.fixture(params=["few", "many"])
def number_of_frames(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames that are broadcast to the rows, and frames too many for that."""
    if request.param == "many":
        monkeypatch.setattr(between, "BROADCAST_LIMIT", 0)


def draw_rows(spark: SparkSession, longest: int) -> tuple[DataFrame, DataFrame]:
    """Draw frames and rows: of similar keys, and mostly of one key.

    Frames have one length at most in a draw: time is cut into slices by their average length.
    """
    rng = random.Random(7)
    frames, rows = [], []
    for shape, hosts in (("alike", ["a", "b", "c", None]), ("one", ["a"] * 9 + ["b"])):
        for number in range(40):
            start = rng.randint(0, 1000)
            end = None if number == 3 else start + rng.randint(-5, longest)
            frames.append((shape, len(frames), rng.choice(hosts), minutes(start), minutes(end)))
        for _ in range(400):
            at, size = rng.choice([None, *range(0, 1100)]), rng.choice([None, 1, 2, 50])
            rows.append((shape, rng.choice(hosts), minutes(at), size, rng.random()))
    return local(spark.createDataFrame(frames, FRAMES)), local(spark.createDataFrame(rows, ROWS))


def local(rows: DataFrame) -> DataFrame:
    """Return the same rows as Arrow, which need no Python worker for each read."""
    return rows.sparkSession.createDataFrame(rows.toArrow(), rows.schema)


def plain(frames: DataFrame, rows: DataFrame, by: list[str], lead: int, lag: int, shift: int) -> DataFrame:
    f, r = frames.alias("f"), rows.alias("r")

    def moved(column: str, by: int) -> str:
        return f"{column} + INTERVAL {by} MINUTES"

    inside = F.expr(
        f"r.at >= {moved('f.start', -lead - shift)} AND r.at < {moved('f.end', lag - shift)}"
        + "".join(f" AND f.{name} = r.{name}" for name in by)
    )
    return f.join(r, inside, "left")


SHAPES = {
    "by_key-short": (KEY, 60),
    "no_key-nested": ([], 900),
    "by_key-nested": (KEY, 900),
    "no_key-short": ([], 60),
}
SPANS = [(0, 0, 0), (30, 5, 0), (0, 10, 120)]
QUICK = [("by_key-short", (30, 5, 0)), ("no_key-nested", (0, 10, 120))]
"""Represents the other shapes and spans in the quick tier."""


@pytest.mark.parametrize(
    ("by", "longest", "lead", "lag", "shift"),
    [
        pytest.param(
            *SHAPES[shape],
            *span,
            id=f"{shape}-{span}",
            marks=[pytest.mark.full] * ((shape, span) not in QUICK),
        )
        for shape in SHAPES
        for span in SPANS
    ],
)
def test_frames_have_rows_and_aggregates_of_a_plain_join(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    by: list[str],
    longest: int,
    lead: int,
    lag: int,
    shift: int,
) -> None:
    frames, rows = draw_rows(spark, longest)
    rows = rows if by else rows.withColumnsRenamed({"host": "from", "shape": "of"})
    times = {
        "lead": timedelta(minutes=lead),
        "lag": timedelta(minutes=lag),
        "shift": timedelta(minutes=shift),
    }
    joined = plain(frames, rows, by, lead, lag, shift)
    expected = joined.groupBy("f.id").agg(
        F.count("r.at"), F.sum("r.size"), F.avg("r.size"), F.min("r.size"), F.max("r.took")
    )
    aggregated = sorted(map(tuple, expected.collect()))
    assert len(aggregated) == 80
    for few in (between.BROADCAST_LIMIT, 0):
        # Frames are broadcast to the rows; and frames are too many for that.
        monkeypatch.setattr(between, "BROADCAST_LIMIT", few)
        result = between_join(frames, rows, on=ON, by=by, how=AGGREGATES, **times)
        assert result.columns == ["shape", "id", "host", "start", "end", *AGGREGATES]
        assert sorted(map(tuple, result.select("id", *AGGREGATES).collect())) == aggregated
    pairs = joined.where("r.at IS NOT NULL").select("f.id", "r.at", "r.size", "r.took").collect()
    matched = between_join(frames, rows, on=ON, by=by, **times).collect()
    counts = Counter((row["id"], row["at"], row["size"], row["took"]) for row in matched)
    assert counts == Counter(map(tuple, pairs))
    assert counts
    ordered = [tuple(row[name] or "" for name in (*by, "start", "end")) for row in matched]
    assert ordered == sorted(ordered)


@pytest.mark.usefixtures("number_of_frames")
def test_nan_is_larger_than_every_number_as_in_spark(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [(minutes(1), float("nan")), (minutes(50), 2.0)], "at timestamp, `to` double"
    )
    # Of many slices or one: short frames next to the long one.
    for count in (1, 60):
        spans = [
            (number, minutes(number), minutes(60 if number == 0 else number + 1)) for number in range(count)
        ]
        frames = spark.createDataFrame(spans, "id int, start timestamp, end timestamp")
        # The column's name would clash with `__to`, if values were named in the same way.
        how = {"least": "min(to)", "most": "max(to)"}
        result = between_join(frames, rows, on=ON, how=how).where("id = 0").first()
        assert result is not None
        assert result["least"] == 2.0
        assert math.isnan(result["most"])


@pytest.mark.usefixtures("number_of_frames")
def test_frames_with_equal_times_are_sorted(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(minutes(1),)], "at timestamp")
    frames = spark.createDataFrame(
        [(number, minutes(0), minutes(60)) for number in random.Random(2).sample(range(40), 40)],
        "id int, start timestamp, end timestamp",
    )
    for count in (3, 7):
        parted = frames.repartition(count)
        result = between_join(parted, rows, on=ON, how={"many": "count"}).collect()
        assert [row["id"] for row in result] == list(range(40))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"on": ("begin", "end", "at")}, "frames: no column 'begin'; there are id, host, start, end"),
        ({"on": ("start", "end", "size")}, "rows: size must be a timestamp; it is int"),
        ({"by": ["id"]}, "rows: no column 'id'; there are host, at, size, took"),
        ({"by": []}, "frames and rows both have a column 'host', which is not in by"),
        ({"how": {"n": "median(size)"}}, "how: n: must be count, or sum, mean, min or max of a column, as sum(bytes); got 'median(size)'"),
        ({"how": {"n": "sum(took)"}}, "how: n: sum takes whole numbers; took is double"),
        ({"how": {"n": "max(host)"}}, "how: n: max takes numbers; host is string"),
        ({"how": {"n": "max(sze)"}}, "how: n: no column 'sze'; there are host, at, size, took"),
        ({"how": {"id": "count"}}, "how: id is a column of frames; choose another name"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(spark: SparkSession, changes: dict[str, object], message: str) -> None:
    frames, rows = (spark.createDataFrame([], of.partition(", ")[2]) for of in (FRAMES, ROWS))
    requested = {"on": ON, "by": ["host"], **changes}
    with pytest.raises(ValueError, match=exactly(message)):
        between_join(frames, rows, **requested)  # type: ignore[arg-type]
