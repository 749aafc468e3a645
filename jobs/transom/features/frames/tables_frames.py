"""What hours tell of frames, in the form in which people read it."""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.engine.hours import quoted
from transom.features.check_builders import built_in
from transom.features.frames import fingerprints
from transom.features.frames import tables_open_frames as open_frames
from transom.features.frames.checks import overlapping
from transom.features.frames.resolve import FrameBlock
from transom.ledger.stage import Computed, Part, Reads, Request, Share, Step
from transom.spec.stream import Stream
from transom.storage.tables import Table

TABLE = "frames"
COLUMNS = (
    "hour", "frame_id", "start", "end", "length_s", "records", "missing", "new_records", "fragment", "state",
    "peak", "peak_time", "mean",
)  # fmt: skip


def step_of(stream: Stream, blocks: Mapping[str, FrameBlock]) -> Step:
    """The step of the table, less the columns by which Spark measures it (`measured`)."""
    table = Table.load(TABLE).declare(
        key={name: kind for block in blocks.values() for name, kind in block.key.items()}
    )
    parts = {
        name: Part(
            (Reads("frame", name, open_frames.TABLE),),
            fingerprints.frames(stream, name),
            (*COLUMNS, *block.key),
        )
        for name, block in blocks.items()
    }
    return Step(
        table,
        parts,
        lambda request: frames_of(request, blocks),
        checks=(
            *built_in(stream, "frames_apart", metric="frames_overlapping", at_most=0),
            *built_in(stream, "frames_exact", metric="frames_inexact", at_most=0),
        ),
    )


def measured(step: Step) -> Step:
    """The step with the columns by which Spark measures it."""
    inexact = F.col("mean").isNull() & F.col("peak").isNotNull()
    return replace(
        step,
        figures={"frames_inexact": F.sum(inexact.cast("bigint"))},
        faults={"frames_exact": inexact},
    )


def frames_of(request: Request, blocks: Mapping[str, FrameBlock]) -> Computed:
    """What every kind's target hours tell."""
    shares = []
    for name, targets in request.targets.items():
        rows = request.pins.read(open_frames.TABLE, targets)
        rows = rows.where((F.col("block") == name) & (F.col("row") != open_frames.LEFT))
        shares.append(Share(name, _as_told(rows, blocks[name])))
    asked = {name: blocks[name] for name in request.targets}
    return Computed(shares, lambda rows: overlapping(rows, asked))


def _as_told(rows: DataFrame, block: FrameBlock) -> DataFrame:
    (up, down), key = block.unit.step, quoted(block.key)
    # As text that tells a null from every value, and one column from the next; a time in full, of which JSON
    # has milliseconds.
    of_key = [
        F.unix_micros(column) if kind == "timestamp" else column
        for column, kind in zip(key, block.key.values(), strict=True)
    ]
    named = F.struct(F.lit(block.name), F.struct(*of_key), F.unix_micros("first"))
    identity = F.to_json(named, {"ignoreNullFields": "false"})
    mean = F.col("total").cast("double") * float(up) / (F.col("values").cast("double") * float(down))
    return rows.select(
        "hour",
        F.substring(F.sha2(identity, 256), 1, 32).alias("frame_id"),
        *key,
        "start",
        "end",
        (F.col("length") / 1_000_000).alias("length_s"),
        "records",
        "missing",
        F.col("new").alias("new_records"),
        "fragment",
        F.col("row").alias("state"),
        (F.col("high").cast("double") * float(up) / float(down)).alias("peak"),
        F.col("peak").alias("peak_time"),
        F.when(F.col("exact") & (F.col("values") > 0), mean).alias("mean"),
    )
