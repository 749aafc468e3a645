"""What a run reads of each file, and what the checks of a file say of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from pyspark.sql import functions as F

from transom.formats.layout import Span
from transom.intervals import NO_HOUR
from transom.lake.acceptance import in_short, verdict_of
from transom.lake.book import Node, Verdict
from transom.lake.parts import moment_of
from transom.lake.quality import Check, Finding, judge
from transom.lake.samples import SAMPLE, in_words, sampled
from transom.lake.spool import PART
from transom.stages.checks import (
    Declared,
    accepted_of,
    built_in,
    declared,
    holds,
    met,
    used_columns,
)
from transom.stages.files import Content, Listed, source_id
from transom.stages.keys import CHECK as KEYS
from transom.stages.keys import held_keys, key_checks, taken
from transom.stages.landing import LandingError, is_there
from transom.stages.parsing import Read, Reading
from transom.stages.read_rows import ReadRows
from transom.stream import Stream

SECOND = timedelta(seconds=1)
SCATTERED = "hours_bounded"


def contents(
    stream: Stream,
    node: Node,
    there: Mapping[str, Listed],
    readings: Sequence[Reading],
    reads: Mapping[str, Read],
    rows: ReadRows,
) -> tuple[dict[str, Content], list[Verdict]]:
    """Judges what was read, file by file.

    Args:
        node: the events' node; its hour is that of each file.
        reads: what was read, by path.

    Returns:
        The content of each file that was still there, and what the checks saw.

    Raises:
        LandingError: an executor does not see a file that the driver sees.
    """
    spans = {reading.path: reading.span for reading in readings}
    rules = [rule for rule in declared(stream, "ingest") if rule.every is not None]
    scattered = {path for path, read in reads.items() if _scattered(stream, node, there[path], read)}
    found: dict[str, Content] = {}
    for path, read in reads.items():
        if read.summary is None and read.unreadable is None:
            if is_there(path):
                raise LandingError(f"{path}: the driver sees this file and an executor does not")
            continue
        found[path] = _content(there[path], read, scattered=path in scattered)
    counts = _counts(stream, rules, [reads[path] for path in found.keys() - scattered], rows)
    metrics: dict[str, dict[str, float | None]] = {}
    drift: dict[str, Mapping[str, list[str]]] = {}
    for path, content in found.items():
        drift[path] = _drift(stream, reads[path], None if path in scattered else counts)
        if path in scattered:
            metrics[path] = {"hours": len(reads[path].hours)}
        else:
            metrics[path] = _metrics(stream, content, reads[path], counts, spans[path], rules)
        metrics[path] |= {check: len(names) for check, names in drift[path].items()}
    return _judged(stream, node, there, found, metrics, drift, reads, rows)


def _counts(
    stream: Stream, rules: Sequence[Declared], reads: Sequence[Read], rows: ReadRows
) -> dict[str, dict[str, int]]:
    """How many events of each part, by its name, lack a column of a key, and how many meet each rule; where a
    file lacks a column altogether, also how many each block takes."""
    if not any(read.events for read in reads):
        return {}
    counted = {key.metric: F.sum(key.lacking().cast("bigint")) for key in held_keys(stream)}
    if any(read.summary is not None and read.summary.absent for read in reads):
        counted |= {_taken_by(name): F.sum(taken(sql).cast("bigint")) for name, sql in _wheres(stream)}
    counted |= {
        rule.metric: holds(rule.every, stream.event_types) for rule in rules if rule.every is not None
    }
    if not counted:
        return {}
    groups = rows.events(reads).groupBy(PART).agg(*(column.alias(name) for name, column in counted.items()))
    return {row.pop(PART): row for row in groups.toArrow().to_pylist()}


def _scattered(stream: Stream, node: Node, there: Listed, read: Read) -> bool:
    """Whether a file is withheld for the many hours that its events fall in.

    They may be as many as its lines, where a field is taken for a time that is none. So nothing more is said
    of such a file, neither to the driver nor, hour by hour, to the ledger: it is withheld in the hour of its
    name.
    """
    for check in built_in(stream, SCATTERED, metric="hours"):
        if check.severity == "error" and check.at_most is not None and len(read.hours) > check.at_most:
            named = replace(node, hour=there.hour or NO_HOUR)
            finding = Finding(check, 0, len(read.hours), success=False)
            return not verdict_of(named, finding, accepted_of(stream)).success
    return False


def _drift(
    stream: Stream, read: Read, counts: Mapping[str, Mapping[str, int]] | None
) -> dict[str, list[str]]:
    """For each check of a file's fields, the names at fault.

    Args:
        counts: None where nothing was counted of the file.
    """
    summary = read.summary
    unknown, absent = ([], []) if summary is None else (list(summary.unknown), list(summary.absent))
    reached = None
    if absent and counts is not None:
        conditional = dict(_wheres(stream))
        reached = [
            name
            for name in stream.aggregate
            if name not in conditional or _total(counts, read, _taken_by(name))
        ]
    used = used_columns(stream, reached) if absent else set()
    return {
        "fields_known": unknown,
        "fields_present": absent,
        "used_fields_present": [name for name in absent if name in used],
    }


def _wheres(stream: Stream) -> list[tuple[str, str]]:
    """The blocks that do not take every event, each with its condition."""
    conditions = ((name, stream.condition(name)) for name in stream.aggregate)
    return [(name, where.sql) for name, where in conditions if where is not None]


def _taken_by(block: str) -> str:
    return f"taken by {block}"


def _total(counts: Mapping[str, Mapping[str, int]], read: Read, name: str) -> int:
    return sum(counts[part.name][name] for part in read.events)


def _content(file: Listed, read: Read, *, scattered: bool) -> Content:
    summary = read.summary
    if summary is None:
        return Content(
            "", "", 0, 0, 0, 0, 0, None, None, (), (), {}, None, f"cannot be read: {read.unreadable}"
        )
    return Content(
        source_id=source_id(summary.sha256, file.captures, file.origin),
        digest=summary.sha256,
        bytes=summary.bytes,
        lines=summary.lines,
        header_lines=summary.header_lines,
        accepted=summary.accepted,
        rejected=summary.rejected,
        first_event=None if scattered else read.first_event,
        last_event=None if scattered else read.last_event,
        columns=summary.columns,
        hours=() if scattered else tuple(map(moment_of, read.hours.tolist())),
        prefixes=summary.prefix_digests,
        broken=summary.broken,
    )


def _metrics(
    stream: Stream,
    content: Content,
    read: Read,
    counts: Mapping[str, Mapping[str, int]],
    span: Span | None,
    rules: Sequence[Declared],
) -> dict[str, float | None]:
    events = sum(part.rows for part in read.events)
    # A break has a check of its own, and the line that it cuts may be the only one.
    cut = content.broken is not None
    data_lines = content.lines - content.header_lines - cut

    figures: dict[str, float | None] = {
        # Which of the events repeat others is told later: those are rows of `duplicates`.
        "unaccounted": content.lines - events - content.rejected - content.header_lines,
        "rejected_share": (content.rejected - cut) / data_lines if data_lines else 0.0,
        "seconds_outside": _seconds_outside(content, span),
        "broken": float(content.broken is not None or content.failed is not None),
        "rows": events,
        "hours": len(read.hours),
    }
    figures |= {key.metric: _total(counts, read, key.metric) for key in held_keys(stream)}
    return figures | {
        rule.metric: _total(counts, read, rule.metric) / events if events else None for rule in rules
    }


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
    reads: Mapping[str, Read],
    rows: ReadRows,
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
                sample = _sample(stream, rows, reads[path], finding.check)
            verdict = verdict.with_sample(sample[:SAMPLE])
            contents[path] = _marked(content, verdict)
        elif doubted:
            # Somebody answers for its times: what it was asked by is told where the file stands now.
            verdict = replace(verdict, node=replace(node, hour=there[path].hour or content.hours[0]))
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


def _sample(stream: Stream, rows: ReadRows, read: Read, check: Check) -> list[str]:
    """Some of the rows at fault: events where the check is of events, else rejected lines."""
    faults = {
        rule.metric: ~met(rule.every, stream.event_types)
        for rule in declared(stream, "ingest")
        if rule.every is not None
    }
    if check.name == KEYS:
        faults = {key.metric: key.lacking() for key in held_keys(stream)}
    if check.metric in faults:
        found = rows.events([read]).where(faults[check.metric])
        shown = sampled(found, ["source_line", *stream.event_columns], order=["source_line"])
        return [f"line {row.pop('source_line')}: {in_words(row)}" for row in shown]
    if check.name == SCATTERED:
        earliest = sampled(
            rows.events([read]), ["source_line", "event_time"], order=["event_time", "source_line"]
        )
        return [f"line {row.pop('source_line')}: {in_words(row)}" for row in earliest]
    shown = sampled(rows.rejected([read]), ["source_line", "reason", "raw"], order=["source_line"])
    return [f"line {row['source_line']}: {row['reason']}: {row['raw']}" for row in shown]


def file_checks(stream: Stream) -> tuple[Check, ...]:
    """The checks of one file."""
    return (
        *built_in(stream, "lines_accounted", metric="unaccounted", at_least=0, at_most=0),
        *built_in(stream, "rejected_share", metric="rejected_share"),
        *built_in(stream, SCATTERED, metric="hours"),
        *key_checks(stream),
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
