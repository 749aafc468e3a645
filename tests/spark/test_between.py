"""The between-join on DataFrames, against Spark's own join by the same condition."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

import math
import random
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from transom.stages import between
from transom.stages.between import between_join
from unit.small_stream import exactly

MORNING = datetime(2024, 5, 1, 6, tzinfo=UTC)
AGGREGATES = {
    "many": "count", "total": "sum(size)", "mean": "mean(size)", "least": "min(size)", "most": "max(took)",
}  # fmt: skip


def minutes(number: int | None) -> datetime | None:
    return None if number is None else MORNING + timedelta(minutes=number)


@pytest.fixture(params=["few", "many"], autouse=True)
def number_of_frames(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames that go to where the rows are, and frames that are too many for that."""
    if request.param == "many":
        monkeypatch.setattr(between, "FEW", 0)


@pytest.fixture(params=["alike", "one", "nested"])
def both(request: pytest.FixtureRequest, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Frames and rows: of keys that are alike, mostly of one key, and frames inside of others."""
    dice = random.Random(7)
    hosts = ["a"] * 9 + ["b"] if request.param == "one" else ["a", "b", "c", None]
    longest = 900 if request.param == "nested" else 60
    frames = [
        (number, dice.choice(hosts), minutes(start), minutes(None if number == 3 else start + dice.randint(-5, longest)))
        for number in range(40)
        for start in (dice.randint(0, 1000),)
    ]  # fmt: skip
    rows = [
        (dice.choice(hosts), minutes(dice.choice([None, *range(0, 1100)])), dice.choice([None, 1, 2, 50]), dice.random())
        for _ in range(400)
    ]  # fmt: skip
    return (
        spark.createDataFrame(frames, "id int, host string, start timestamp, end timestamp"),
        spark.createDataFrame(rows, "host string, at timestamp, size int, took double"),
    )


def plain(frames: DataFrame, rows: DataFrame, by: list[str], lead: int, lag: int, shift: int) -> DataFrame:
    f, r = frames.alias("f"), rows.alias("r")

    def moved(column: str, by: int) -> str:
        return f"{column} + INTERVAL {by} MINUTES"

    inside = F.expr(
        f"r.at >= {moved('f.start', -lead - shift)} AND r.at < {moved('f.end', lag - shift)}"
        + "".join(f" AND f.{name} = r.{name}" for name in by)
    )
    return f.join(r, inside, "left")


@pytest.mark.parametrize("by", [["host"], []])
@pytest.mark.parametrize(("lead", "lag", "shift"), [(0, 0, 0), (30, 5, 0), (0, 10, 120)])
def test_a_frame_has_the_rows_and_what_they_come_to(
    both: tuple[DataFrame, DataFrame], by: list[str], lead: int, lag: int, shift: int
) -> None:
    frames, rows = both
    rows = rows if by else rows.withColumnRenamed("host", "from")
    told = {"lead": timedelta(minutes=lead), "lag": timedelta(minutes=lag), "shift": timedelta(minutes=shift)}
    joined = plain(frames, rows, by, lead, lag, shift)
    expected = joined.groupBy("f.id").agg(
        F.count("r.at"), F.sum("r.size"), F.avg("r.size"), F.min("r.size"), F.max("r.took")
    )
    on = ("start", "end", "at")
    found = between_join(frames, rows, on=on, by=by, how=AGGREGATES, **told)
    assert found.columns == ["id", "host", "start", "end", *AGGREGATES]
    assert sorted(map(tuple, found.select("id", *AGGREGATES).collect())) == sorted(
        map(tuple, expected.collect())
    )
    matched = between_join(frames, rows, on=on, by=by, **told)
    pairs = joined.where("r.at IS NOT NULL").select("f.id", "r.at", "r.size", "r.took")
    assert matched.select("id", "at", "size", "took").exceptAll(pairs).isEmpty()
    assert matched.count() == pairs.count() > 0
    ordered = [
        (row["host"] or "", row["start"], row["end"])
        for row in matched.select("host", "start", "end").collect()
    ]
    assert ordered == sorted(ordered, key=lambda row: row if by else row[1:])


def test_what_is_no_number_is_larger_than_every_number_as_in_spark(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [(minutes(1), float("nan")), (minutes(50), 2.0)], "at timestamp, took double"
    )
    # Of many slices or one: beside the long frame, short ones.
    for many in (1, 60):
        spans = [
            (number, minutes(number), minutes(60 if number == 0 else number + 1)) for number in range(many)
        ]
        frames = spark.createDataFrame(spans, "id int, start timestamp, end timestamp")
        how = {"least": "min(took)", "most": "max(took)"}
        found = between_join(frames, rows, on=("start", "end", "at"), how=how).where("id = 0").first()
        assert found is not None
        assert found["least"] == 2.0
        assert math.isnan(found["most"])


def test_frames_of_one_stretch_are_in_order_too(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(minutes(1),)], "at timestamp")
    frames = spark.createDataFrame(
        [(number, minutes(0), minutes(60)) for number in random.Random(2).sample(range(40), 40)],
        "id int, start timestamp, end timestamp",
    )
    for many in (3, 7):
        parted = frames.repartition(many)
        found = between_join(parted, rows, on=("start", "end", "at"), how={"many": "count"}).collect()
        assert [row["id"] for row in found] == list(range(40))


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
def test_what_is_refused(both: tuple[DataFrame, DataFrame], changes: dict[str, object], message: str) -> None:
    asked = {"on": ("start", "end", "at"), "by": ["host"], **changes}
    with pytest.raises(ValueError, match=exactly(message)):
        between_join(*both, **asked)  # type: ignore[arg-type]
