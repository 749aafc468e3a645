"""What a run reads of each file, and what the checks of a file say of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.lake.acceptance import accept
from transom.lake.ledger import Node, Verdict
from transom.lake.quality import Check, judge
from transom.lake.refresh import SAMPLE
from transom.stages.checks import accepted_of, built_in, declared, holds
from transom.stages.files import NO_HOUR, Content, Listed, source_id
from transom.stages.landing import LandingError, is_there
from transom.stages.parsing import Reading
from transom.stream import Stream


def contents(
    stream: Stream,
    node: Node,
    there: Mapping[str, Listed],
    readings: Sequence[Reading],
    frame: DataFrame,
) -> tuple[dict[str, Content], list[Verdict]]:
    """Judges what was read, file by file.

    Args:
        node: the events' node; its hour is that of each file.
        frame: what was parsed of the readings.

    Returns:
        The content of each file that was still there, and what the checks saw.

    Raises:
        LandingError: an executor does not see a file that the driver sees.
    """
    paths = {reading.number: reading.path for reading in readings}
    rules = declared(stream, "ingest")
    null_key = F.lit(False)
    for column in sorted({name for block in stream.aggregate.values() for name in block.key} | {*stream.key}):
        null_key = null_key | F.col(f"`{column}`").isNull()
    hour = F.date_trunc("hour", "event_time")
    # Rejected lines and a file's summary have no time: they make a group of their own.
    groups = frame.groupBy("__file", hour.alias("hour")).agg(
        F.count("*").alias("events"),
        F.sum(null_key.cast("bigint")).alias("null_keys"),
        F.sum(_outside(hour).cast("bigint")).alias("outside"),
        F.min("event_time").alias("first"),
        F.max("event_time").alias("last"),
        F.max("__summary").alias("summary"),
        *(
            holds(rule.every, stream.event_types).alias(rule.metric)
            for rule in rules
            if rule.every is not None
        ),
    )
    hours: dict[str, list[dict[str, Any]]] = {path: [] for path in paths.values()}
    summaries: dict[str, dict[str, Any]] = {}
    for row in groups.toArrow().to_pylist():
        path = paths[row["__file"]]
        if row["hour"] is None:
            summaries[path] = json.loads(row["summary"])
        else:
            hours[path].append(row)
    found: dict[str, Content] = {}
    metrics: dict[str, dict[str, float | None]] = {}
    for path, facts in summaries.items():
        if facts.get("vanished"):
            if is_there(path):
                raise LandingError(f"{path}: the driver sees this file and an executor does not")
            continue
        found[path] = _content(there[path], facts, hours[path])
        metrics[path] = _metrics(found[path], hours[path], rules)
    numbers = {path: number for number, path in paths.items()}
    return _judged(stream, node, there, found, metrics, frame, numbers)


def _outside(hour: Column) -> Column:
    return (F.col("event_time") < hour) | (F.col("event_time") >= hour + F.expr("INTERVAL 1 HOUR"))


def _content(file: Listed, facts: Mapping[str, Any], hours: Sequence[Mapping[str, Any]]) -> Content:
    if "unreadable" in facts:
        return Content(
            "", "", 0, 0, 0, 0, 0, None, None, (), (), {}, None, f"cannot be read: {facts['unreadable']}"
        )
    return Content(
        source_id=source_id(facts["sha256"], file.captures),
        digest=facts["sha256"],
        bytes=facts["bytes"],
        lines=facts["lines"],
        header_lines=facts["header_lines"],
        accepted=facts["accepted"],
        rejected=facts["rejected"],
        first_event=min((row["first"] for row in hours), default=None),
        last_event=max((row["last"] for row in hours), default=None),
        columns=tuple(facts["columns"]),
        hours=tuple(sorted(row["hour"].astimezone(UTC) for row in hours)),
        prefixes={int(length): value for length, value in facts["prefix_digests"].items()},
        broken=facts["broken"],
    )


def _metrics(
    content: Content, hours: Sequence[Mapping[str, Any]], rules: Sequence[Any]
) -> dict[str, float | None]:
    events = sum(row["events"] for row in hours)
    data_lines = content.lines - content.header_lines
    figures: dict[str, float | None] = {
        "unaccounted": content.lines - events - content.rejected - content.header_lines,
        "rejected_share": content.rejected / data_lines if data_lines else 0.0,
        "null_keys": sum(row["null_keys"] for row in hours),
        "outside": sum(row["outside"] for row in hours),
        "broken": float(content.broken is not None or content.failed is not None),
        "rows": events,
    }
    for rule in rules:
        if rule.every is not None:
            figures[rule.metric] = sum(row[rule.metric] for row in hours) / events if events else None
    return figures


def _judged(
    stream: Stream,
    node: Node,
    there: Mapping[str, Listed],
    contents: dict[str, Content],
    metrics: Mapping[str, Mapping[str, float | None]],
    frame: DataFrame,
    numbers: Mapping[str, int],
) -> tuple[dict[str, Content], list[Verdict]]:
    paths = sorted(metrics)
    verdicts = []
    for finding in judge(file_checks(stream), [metrics[path] for path in paths]):
        path = paths[finding.row]
        content = contents[path]
        hour = there[path].hour or (content.hours[0] if content.hours else NO_HOUR)
        verdict = accept(
            Verdict(
                replace(node, hour=hour),
                finding.check.name,
                finding.check.severity,
                finding.observed,
                finding.check.expected,
                finding.success,
                finding.check.column,
                path,
            ),
            accepted_of(stream),
        )
        if not verdict.success:
            verdict = verdict.with_sample(_sample(frame, numbers[path]))
            if verdict.severity == "error":
                words = f"{verdict.check}: observed {verdict.observed:g}, expected {verdict.expected}"
                failed = f"{content.failed}; {words}" if content.failed else words
                contents[path] = content = replace(content, failed=failed)
        verdicts.append(verdict)
    return contents, verdicts


def _sample(frame: DataFrame, number: int) -> list[str]:
    refused = frame.where((F.col("__file") == number) & F.col("__reason").isNotNull())
    rows = refused.orderBy("source_line").select("source_line", "__reason", "__raw").limit(SAMPLE)
    return [f"line {r['source_line']}: {r['__reason']}: {r['__raw']}" for r in rows.toArrow().to_pylist()]


def file_checks(stream: Stream) -> tuple[Check, ...]:
    """The checks of one file."""
    return (
        *built_in(stream, "lines_accounted", metric="unaccounted", at_least=0, at_most=0),
        *built_in(stream, "rejected_share", metric="rejected_share"),
        *built_in(stream, "keys_not_null", metric="null_keys", at_most=0),
        *built_in(stream, "times_inside_hour", metric="outside", at_most=0),
        *built_in(stream, "file_readable", metric="broken", at_most=0),
        *(rule.check for rule in declared(stream, "ingest")),
    )
