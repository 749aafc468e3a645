"""What a run reads of each file, and what the checks of a file say of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache

from pyspark.sql import functions as F

from transom.core.intervals import UNKNOWN_HOUR, moment_of
from transom.core.partitions import CheckResult, PartitionKey
from transom.engine.check_builders import Declared, columns_read, declared, row_meets, waivers_of
from transom.engine.checks import evaluate_checks
from transom.engine.failing_rows import SAMPLE, format_row, sample_failing_rows
from transom.engine.staging import PART
from transom.features.ingest.checks import CAPTURES, SCATTERED, file_checks
from transom.features.ingest.file_records import FileContent, ListedFile, source_id
from transom.features.ingest.key_checks import CHECK as KEYS
from transom.features.ingest.key_checks import RequiredKeyColumn, required_keys
from transom.features.ingest.landing import LandingError, is_there
from transom.features.ingest.read_files import FileReadResult, FileReadTask
from transom.features.ingest.staged_rows import StagedRows
from transom.formats.record_format import Span
from transom.ledger.check import Check, MetricResult
from transom.ledger.stage import rows_where
from transom.ledger.waivers import Waiver, check_result_of, format_failure
from transom.spec.block_columns import Use
from transom.spec.checks import MIN_LINES_FOR_SHARE
from transom.spec.stream import Stream

SECOND = timedelta(seconds=1)


def check_files(
    stream: Stream,
    node: PartitionKey,
    there: Mapping[str, ListedFile],
    readings: Sequence[FileReadTask],
    reads: Mapping[str, FileReadResult],
    rows: StagedRows,
) -> tuple[dict[str, FileContent], list[CheckResult]]:
    """Judges what was read, file by file.

    Args:
        node: the events' node; its hour is that of each file.
        reads: what was read, by path.

    Returns:
        The content of each file that was still there, and what the checks saw.

    Raises:
        LandingError: an executor does not see a file that the driver sees.
    """
    spans = {reading.file.path: reading.span for reading in readings}
    rules = _Rules.of(stream)
    scattered = {
        path for path, read in reads.items() if _spans_too_many_hours(rules, node, there[path], read)
    }
    found: dict[str, FileContent] = {}
    for path, read in reads.items():
        if read.summary is None and read.unreadable is None:
            if is_there(path):
                raise LandingError(f"{path}: the driver sees this file and an executor does not")
            continue
        found[path] = _content(there[path], read, scattered=path in scattered)
    counts = _counts(rules, [reads[path] for path in found.keys() - scattered], rows)
    metrics: dict[str, dict[str, float | None]] = {}
    drift: dict[str, Mapping[str, list[str]]] = {}
    for path, content in found.items():
        drift[path] = _drift(rules, reads[path], None if path in scattered else counts)
        if path in scattered:
            metrics[path] = {"hours": len(reads[path].hours)}
        else:
            metrics[path] = _metrics(content, reads[path], counts, spans[path], rules)
        metrics[path] |= {check: len(names) for check, names in drift[path].items()}
        metrics[path][CAPTURES] = int(there[path].misnamed is not None)
    return _evaluated(rules, node, there, found, metrics, drift, reads, rows)


@dataclass(frozen=True)
class _Rules:
    """What files are judged by, compiled once for all of them.

    Attributes:
        declared: the stream's own checks of events.
        keys: the columns that events must have.
        uses: what blocks read in some events only.
        checks: all checks of a file.
        accepted: the failed checks that the stream lets pass.
        used: which columns something is computed from, where some of `uses` are reached, by their metrics.
    """

    stream: Stream
    declared: Sequence[Declared]
    keys: Sequence[RequiredKeyColumn]
    uses: Sequence[Use]
    checks: Sequence[Check]
    accepted: Sequence[Waiver]
    used: Callable[[frozenset[str]], set[str]]

    @classmethod
    def of(cls, stream: Stream) -> "_Rules":
        """The rules that a stream declares."""
        uses = (use for block in stream.columns_read for use in block.all_uses)

        def used(reached: frozenset[str]) -> set[str]:
            return columns_read(stream, lambda use: use.where is None or use.metric in reached)

        return cls(
            stream,
            [rule for rule in declared(stream, "ingest") if rule.every is not None],
            required_keys(stream),
            [use for use in uses if use.columns and use.where is not None],
            file_checks(stream),
            waivers_of(stream),
            cache(used),
        )


def _counts(rules: _Rules, reads: Sequence[FileReadResult], rows: StagedRows) -> dict[str, dict[str, int]]:
    """How many events of each part, by its name, lack a column of a key, and how many meet each rule; where a
    file lacks a column altogether, also how many each block reads columns in."""
    if not any(read.events for read in reads):
        return {}
    types = rules.stream.event_types
    counted = {key.metric: key.lacking for key in rules.keys}
    if any(read.summary is not None and read.summary.absent for read in reads):
        counted |= {use.metric: _reads(use) for use in rules.uses}
    counted |= {
        rule.metric: row_meets(rule.every, types) for rule in rules.declared if rule.every is not None
    }
    if not counted:
        return {}
    counts = (F.expr(rows_where(condition)).alias(name) for name, condition in counted.items())
    groups = rows.events(reads).groupBy(PART).agg(*counts)
    return {row.pop(PART): row for row in groups.toArrow().to_pylist()}


def _spans_too_many_hours(rules: _Rules, node: PartitionKey, there: ListedFile, read: FileReadResult) -> bool:
    """Whether a file is withheld for the many hours that its events fall in.

    They may be as many as its lines, where a field is taken for a time that is none. So nothing more is said
    of such a file, neither to the driver nor, hour by hour, to the ledger: it is withheld in the hour of its
    name.
    """
    for check in rules.checks:
        if (
            check.name == SCATTERED
            and check.severity == "error"
            and check.at_most is not None
            and len(read.hours) > check.at_most
        ):
            named = replace(node, hour=there.hour or UNKNOWN_HOUR)
            finding = MetricResult(check, 0, len(read.hours), success=False)
            return not check_result_of(named, finding, rules.accepted).success
    return False


def _drift(
    rules: _Rules, read: FileReadResult, counts: Mapping[str, Mapping[str, int]] | None
) -> dict[str, list[str]]:
    """For each check of a file's fields, the names at fault.

    Args:
        counts: None where nothing was counted of the file.
    """
    summary = read.summary
    unknown, absent = ([], []) if summary is None else (list(summary.unknown), list(summary.absent))
    used: set[str] = set()
    if absent:
        reached = (use for use in rules.uses if counts is None or _total(counts, read, use.metric))
        used = rules.used(frozenset(use.metric for use in reached))
    return {
        "fields_known": unknown,
        "fields_present": absent,
        "used_fields_present": [name for name in absent if name in used],
    }


def _reads(use: Use) -> str:
    """Return the condition, as Spark SQL, of events in which the columns of a use are needed."""
    return "true" if use.where is None else f"coalesce({use.where}, {str(use.decides).lower()})"


def _total(counts: Mapping[str, Mapping[str, int]], read: FileReadResult, name: str) -> int:
    return sum(counts[part.name][name] for part in read.events)


def _content(file: ListedFile, read: FileReadResult, *, scattered: bool) -> FileContent:
    summary = read.summary
    if summary is None:
        return FileContent(
            "", "", 0, 0, 0, 0, 0, None, None, (), (), {}, None, f"cannot be read: {read.unreadable}"
        )
    return FileContent(
        source_id=source_id(summary.sha256, **file.identity),
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
    content: FileContent,
    read: FileReadResult,
    counts: Mapping[str, Mapping[str, int]],
    span: Span | None,
    rules: _Rules,
) -> dict[str, float | None]:
    events = sum(part.rows for part in read.events)
    # A break has a check of its own, and the line that it cuts may be the only one.
    cut = content.broken is not None
    data_lines = content.lines - content.header_lines - cut
    share = (content.rejected - cut) / data_lines if data_lines else 0.0
    few = events > 0 and data_lines < MIN_LINES_FOR_SHARE and "rejected_share" not in rules.stream.checks
    nul_bytes = 0 if read.summary is None else read.summary.nul_bytes

    figures: dict[str, float | None] = {
        # Which of the events repeat others is told later: those are rows of `duplicates`.
        "unaccounted": content.lines - events - content.rejected - content.header_lines,
        "rejected_share": None if few else share,
        "rejected_share_of_few": share if few else None,
        "nul_bytes": nul_bytes or None,
        "seconds_outside": _seconds_outside(content, span),
        "broken": float(content.broken is not None or content.failed is not None),
        "rows": events,
        "hours": len(read.hours),
    }
    time = rules.stream.time
    if time is not None and time.is_local and read.summary is not None:
        figures["ambiguous"] = read.summary.ambiguous
    figures |= {key.metric: _total(counts, read, key.metric) for key in rules.keys}
    return figures | {
        rule.metric: _total(counts, read, rule.metric) / events if events else None for rule in rules.declared
    }


def _seconds_outside(content: FileContent, span: Span | None) -> float:
    """How far a file's events reach beyond what it may hold; lines beyond have been rejected before."""
    if span is None or content.first_event is None or content.last_event is None:
        return 0.0
    last = span.end - timedelta.resolution
    return max((span.start - content.first_event) / SECOND, (content.last_event - last) / SECOND, 0.0)


def _evaluated(
    rules: _Rules,
    node: PartitionKey,
    there: Mapping[str, ListedFile],
    contents: dict[str, FileContent],
    metrics: Mapping[str, Mapping[str, float | None]],
    drift: Mapping[str, Mapping[str, list[str]]],
    reads: Mapping[str, FileReadResult],
    rows: StagedRows,
) -> tuple[dict[str, FileContent], list[CheckResult]]:
    paths = sorted(metrics)
    verdicts = []
    for finding in evaluate_checks(rules.checks, [metrics[path] for path in paths]):
        path = paths[finding.row]
        content = contents[path]
        # Of a file whose times are in doubt, the first one says nothing: as in `_spans_too_many_hours`.
        doubted = (
            finding.check.name == SCATTERED and finding.check.severity == "error" and not finding.success
        )
        hour = there[path].hour or (content.hours[0] if content.hours and not doubted else UNKNOWN_HOUR)
        verdict = check_result_of(replace(node, hour=hour), finding, rules.accepted, path)
        if not verdict.success:
            sample = drift[path].get(verdict.check)
            if verdict.check == CAPTURES:
                sample = list(filter(None, [there[path].misnamed]))
            elif sample is None:
                sample = _sample(rules, rows, reads[path], finding.check)
            verdict = verdict.with_failing_rows(sample[:SAMPLE])
            contents[path] = _marked(content, verdict)
        elif doubted:
            # Somebody answers for its times: what it was asked by is told where the file stands now.
            verdict = replace(verdict, node=replace(node, hour=there[path].hour or content.hours[0]))
        verdicts.append(verdict)
    return contents, verdicts


def _marked(content: FileContent, verdict: CheckResult) -> FileContent:
    """A content with what a failed check says of it."""
    words = format_failure(verdict)
    if verdict.check == "file_readable" and content.broken is not None:
        words = f"{verdict.check}: {content.broken}"
    elif verdict.check == CAPTURES and verdict.failing_rows:
        words = f"{verdict.check}: {verdict.failing_rows[0]}"
    match verdict.severity:
        case "error":
            return replace(content, failed="; ".join(filter(None, (content.failed, words))))
        case "incomplete":
            return replace(content, lacks="; ".join(filter(None, (content.lacks, words))))
        case "warning":
            return content


def _sample(rules: _Rules, rows: StagedRows, read: FileReadResult, check: Check) -> list[str]:
    """Some of the rows at fault: events where the check is of events, else rejected lines."""
    stream = rules.stream
    faults = {
        rule.metric: f"NOT {row_meets(rule.every, stream.event_types)}"
        for rule in rules.declared
        if rule.every is not None
    }
    if check.name == KEYS:
        faults = {key.metric: key.lacking for key in rules.keys}
    if check.metric in faults:
        found = rows.events([read]).where(faults[check.metric])
        shown = sample_failing_rows(found, ["source_line", *stream.event_columns], order=["source_line"])
        return [f"line {row.pop('source_line')}: {format_row(row)}" for row in shown]
    if check.name == SCATTERED:
        earliest = sample_failing_rows(
            rows.events([read]), ["source_line", "event_time"], order=["event_time", "source_line"]
        )
        return [f"line {row.pop('source_line')}: {format_row(row)}" for row in earliest]
    if check.metric == "ambiguous":
        line = None if read.summary is None else read.summary.ambiguous_line
        return [f"line {line} is the first of them"]
    shown = sample_failing_rows(
        rows.rejected([read]), ["source_line", "reason", "raw"], order=["source_line"]
    )
    return [f"line {row['source_line']}: {row['reason']}: {row['raw']}" for row in shown]
