"""What a run reads of each file, and what the checks of a file say of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, timedelta
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.formats.layout import Span
from transom.intervals import NO_HOUR
from transom.lake.acceptance import in_short, verdict_of
from transom.lake.book import Node, Verdict
from transom.lake.quality import Check, Finding, in_words, judge
from transom.lake.refresh import SAMPLE
from transom.stages.checks import (
    Declared,
    accepted_of,
    built_in,
    declared,
    holds,
    key_columns,
    met,
    used_columns,
)
from transom.stages.files import Content, Listed, source_id
from transom.stages.landing import LandingError, is_there
from transom.stages.parsing import Reading
from transom.stream import Stream

SECOND = timedelta(seconds=1)
SCATTERED = "hours_bounded"


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
    numbers = {path: number for number, path in paths.items()}
    spans = {reading.path: reading.span for reading in readings}
    rules = declared(stream, "ingest")
    hour = F.date_trunc("hour", "event_time")
    # Rejected lines and a file's summary have no time: they make a group of their own.
    groups = frame.groupBy("__file", hour.alias("hour")).agg(
        F.count("*").alias("events"),
        F.sum(_lacks_key(stream).cast("bigint")).alias("null_keys"),
        F.min("event_time").alias("first"),
        F.max("event_time").alias("last"),
        F.max("__summary").alias("summary"),
        *(
            holds(rule.every, stream.event_types).alias(rule.metric)
            for rule in rules
            if rule.every is not None
        ),
    )
    by_hour = groups.toArrow()
    scattered = _scattered(stream, node, there, paths, by_hour)
    few = pc.invert(pc.is_in(by_hour["__file"], pa.array(list(scattered), by_hour["__file"].type)))
    hours: dict[str, list[dict[str, Any]]] = {path: [] for path in paths.values()}
    summaries: dict[str, dict[str, Any]] = {}
    for row in by_hour.filter(pc.or_(few, pc.is_null(by_hour["hour"]))).to_pylist():
        path = paths[row["__file"]]
        if row["hour"] is None:
            summaries[path] = json.loads(row["summary"])
        else:
            hours[path].append(row)
    found: dict[str, Content] = {}
    metrics: dict[str, dict[str, float | None]] = {}
    drift: dict[str, Mapping[str, list[str]]] = {}
    for path, facts in summaries.items():
        if facts.get("vanished"):
            if is_there(path):
                raise LandingError(f"{path}: the driver sees this file and an executor does not")
            continue
        found[path] = _content(there[path], facts, hours[path])
        drift[path] = _drift(stream, facts)
        if numbers[path] in scattered:
            metrics[path] = {"hours": scattered[numbers[path]]}
        else:
            metrics[path] = _metrics(found[path], hours[path], spans[path], rules)
        metrics[path] |= {check: len(names) for check, names in drift[path].items()}
    return _judged(stream, node, there, found, metrics, drift, frame, numbers)


def _scattered(
    stream: Stream, node: Node, there: Mapping[str, Listed], paths: Mapping[int, str], by_hour: pa.Table
) -> dict[int, int]:
    """How many hours the events of a file fall in, of the files that are withheld for that.

    They may be as many as its lines, where a field is taken for a time that is none. So nothing more is said
    of these files, neither to the driver nor, hour by hour, to the ledger: they are withheld in the hour of
    their name.
    """
    found = {}
    counts = by_hour["__file"].filter(pc.is_valid(by_hour["hour"])).value_counts().to_pylist()
    for check in built_in(stream, SCATTERED, metric="hours"):
        for number, count in ((row["values"], row["counts"]) for row in counts):
            if check.severity == "error" and check.at_most is not None and count > check.at_most:
                named = replace(node, hour=there[paths[number]].hour or NO_HOUR)
                finding = Finding(check, 0, count, success=False)
                if not verdict_of(named, finding, accepted_of(stream)).success:
                    found[number] = count
    return found


def _drift(stream: Stream, facts: Mapping[str, Any]) -> dict[str, list[str]]:
    """For each check of a file's fields, the names at fault."""
    absent = facts.get("absent", [])
    used = used_columns(stream)
    return {
        "fields_known": facts.get("unknown", []),
        "fields_present": absent,
        "used_fields_present": [name for name in absent if name in used],
    }


def _lacks_key(stream: Stream) -> Column:
    """Whether an event lacks a column of a key."""
    lacks = (F.col(f"`{column}`").isNull() for column in key_columns(stream))
    return reduce(Column.__or__, lacks, F.lit(False))


def _content(file: Listed, facts: Mapping[str, Any], hours: Sequence[Mapping[str, Any]]) -> Content:
    if "unreadable" in facts:
        return Content(
            "", "", 0, 0, 0, 0, 0, None, None, (), (), {}, None, f"cannot be read: {facts['unreadable']}"
        )
    return Content(
        source_id=source_id(facts["sha256"], file.captures, file.origin),
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
    content: Content, hours: Sequence[Mapping[str, Any]], span: Span | None, rules: Sequence[Declared]
) -> dict[str, float | None]:
    events = sum(row["events"] for row in hours)
    # A break has a check of its own, and the line that it cuts may be the only one.
    cut = content.broken is not None
    data_lines = content.lines - content.header_lines - cut
    figures: dict[str, float | None] = {
        # Which of the events repeat others is told later: those are rows of `duplicates`.
        "unaccounted": content.lines - events - content.rejected - content.header_lines,
        "rejected_share": (content.rejected - cut) / data_lines if data_lines else 0.0,
        "null_keys": sum(row["null_keys"] for row in hours),
        "seconds_outside": _seconds_outside(content, span),
        "broken": float(content.broken is not None or content.failed is not None),
        "rows": events,
        "hours": len(hours),
    }
    for rule in rules:
        if rule.every is not None:
            figures[rule.metric] = sum(row[rule.metric] for row in hours) / events if events else None
    return figures


def _seconds_outside(content: Content, span: Span | None) -> float:
    """How far a file's events reach beyond what it may hold; lines beyond have been rejected before."""
    if span is None or content.first_event is None or content.last_event is None:
        return 0.0
    last = span.end - timedelta.resolution
    return max((span.start - content.first_event) / SECOND, (content.last_event - last) / SECOND, 0.0)


def _judged(
    stream: Stream,
    node: Node,
    there: Mapping[str, Listed],
    contents: dict[str, Content],
    metrics: Mapping[str, Mapping[str, float | None]],
    drift: Mapping[str, Mapping[str, list[str]]],
    frame: DataFrame,
    numbers: Mapping[str, int],
) -> tuple[dict[str, Content], list[Verdict]]:
    paths = sorted(metrics)
    verdicts = []
    for finding in judge(file_checks(stream), [metrics[path] for path in paths]):
        path = paths[finding.row]
        content = contents[path]
        # Of a file whose times are in doubt, the first one says nothing: as in `_scattered`.
        doubted = (
            finding.check.name == SCATTERED and finding.check.severity == "error" and not finding.success
        )
        hour = there[path].hour or (content.hours[0] if content.hours and not doubted else NO_HOUR)
        verdict = verdict_of(replace(node, hour=hour), finding, accepted_of(stream), path)
        if not verdict.success:
            sample = drift[path].get(verdict.check)
            if sample is None:
                sample = _sample(stream, frame, numbers[path], verdict.check)
            verdict = verdict.with_sample(sample[:SAMPLE])
            contents[path] = _marked(content, verdict)
        verdicts.append(verdict)
    return contents, verdicts


def _marked(content: Content, verdict: Verdict) -> Content:
    """A content with what a failed check says of it."""
    words = in_short(verdict)
    if verdict.check == "file_readable" and content.broken is not None:
        words = f"{verdict.check}: {content.broken}"
    match verdict.severity:
        case "error":
            return replace(content, failed="; ".join(filter(None, (content.failed, words))))
        case "incomplete":
            return replace(content, lacks="; ".join(filter(None, (content.lacks, words))))
        case "warning":
            return content


def _sample(stream: Stream, frame: DataFrame, number: int, check: str) -> list[str]:
    """Some of the rows at fault: events where the check is of events, else rejected lines."""
    rows = frame.where(F.col("__file") == number)
    faults = {rule.check.name: rule.every for rule in declared(stream, "ingest") if rule.every is not None}
    if check == "keys_not_null" or check in faults:
        lacks = _lacks_key(stream) if check == "keys_not_null" else ~met(faults[check], stream.event_types)
        found = rows.where(F.col("event_time").isNotNull() & lacks).orderBy("source_line").limit(SAMPLE)
        columns = found.select("source_line", *(f"`{name}`" for name in stream.event_columns))
        return [f"line {row.pop('source_line')}: {in_words(row)}" for row in columns.toArrow().to_pylist()]
    if check == SCATTERED:
        earliest = rows.where(F.col("event_time").isNotNull()).orderBy("event_time").limit(SAMPLE)
        times = earliest.select("source_line", "event_time").toArrow().to_pylist()
        return [f"line {row.pop('source_line')}: {in_words(row)}" for row in times]
    refused = rows.where(F.col("__reason").isNotNull()).orderBy("source_line").limit(SAMPLE)
    found = refused.select("source_line", "__reason", "__raw")
    return [f"line {r['source_line']}: {r['__reason']}: {r['__raw']}" for r in found.toArrow().to_pylist()]


def file_checks(stream: Stream) -> tuple[Check, ...]:
    """The checks of one file."""
    return (
        *built_in(stream, "lines_accounted", metric="unaccounted", at_least=0, at_most=0),
        *built_in(stream, "rejected_share", metric="rejected_share"),
        *built_in(stream, SCATTERED, metric="hours"),
        *built_in(stream, "keys_not_null", metric="null_keys", at_most=0),
        *built_in(stream, "times_inside_hour", metric="seconds_outside", at_most=0),
        *built_in(stream, "file_readable", metric="broken", at_most=0),
        *(
            built_in(stream, "fields_known", metric="fields_known", at_most=0)
            if stream.rest == "drop"
            else ()
        ),
        *built_in(stream, "fields_present", metric="fields_present", at_most=0),
        *built_in(stream, "used_fields_present", metric="used_fields_present", at_most=0),
        *(rule.check for rule in declared(stream, "ingest")),
    )
