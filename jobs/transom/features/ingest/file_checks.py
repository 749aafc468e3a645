"""Checks of the files that a run reads."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache

from pyspark.sql import functions as F

from transom.core.intervals import UNKNOWN_HOUR, moment_of
from transom.core.partitions import CheckResult
from transom.engine.check_builders import columns_read, declared, row_meets, waivers_of
from transom.engine.evaluate_checks import evaluate_checks
from transom.engine.failing_rows import SAMPLE, format_row, sample_failing_rows
from transom.engine.staging import PART
from transom.features.ingest.checks import CAPTURES, KEYS, SCATTERED, file_checks, required_keys
from transom.features.ingest.expected_inputs import partition_of
from transom.features.ingest.file_records import FileContent, ListedFile, source_id
from transom.features.ingest.landing import LandingError, is_there
from transom.features.ingest.parsed_rows import ParsedRows
from transom.features.ingest.read_files import FileReadResult, FileReadTask
from transom.formats.record_format import Span
from transom.ledger.check import Check, MetricResult
from transom.ledger.stage import rows_where
from transom.ledger.waivers import check_result_of, format_failure
from transom.spec.checks import MIN_LINES_FOR_SHARE
from transom.spec.stream import Stream
from transom.storage.session import suited_to

SECOND = timedelta(seconds=1)
Counts = Mapping[str, Mapping[str, int]]
"""Numbers of events, by path and metric."""


def check_files(
    stream: Stream, tasks: Sequence[FileReadTask], reads: Mapping[str, FileReadResult], rows: ParsedRows
) -> tuple[dict[str, FileContent], list[CheckResult]]:
    """Check the files that were read.

    Args:
        tasks: the files that were to be read.
        reads: the results of the tasks, by path.
        rows: the rows of the results.

    Returns:
        The content of each file that still existed, and the results of its checks.

    Raises:
        LandingError: an executor does not see a file that the driver sees.
    """
    rules, spans = _Rules(stream), {task.file.path: task.span for task in tasks}
    listed = {task.file.path: task.file for task in tasks}
    scattered = {path for path, read in reads.items() if _is_scattered(rules, listed[path], read)}
    contents: dict[str, FileContent] = {}
    for path, read in reads.items():
        if read.summary is not None or read.unreadable is not None:
            contents[path] = _content(listed[path], read, path in scattered)
        elif is_there(path):
            raise LandingError(f"{path}: the driver sees this file and an executor does not")
    counts = _counts(rules, {path: reads[path] for path in contents.keys() - scattered}, rows)
    metrics: dict[str, dict[str, float | None]] = {}
    drift: dict[str, Mapping[str, list[str]]] = {}
    for path, content in contents.items():
        drift[path] = _drift(rules, reads[path], None if path in scattered else counts[path])
        if path in scattered:
            metrics[path] = {"hours": len(reads[path].hours)}
        else:
            metrics[path] = _metrics(content, reads[path], counts[path], spans[path], rules)
        metrics[path] |= {check: len(names) for check, names in drift[path].items()}
        metrics[path][CAPTURES] = int(listed[path].misnamed is not None)
    paths, results = sorted(metrics), []
    for measured in evaluate_checks(rules.checks, [metrics[path] for path in paths]):
        path, check = paths[measured.row], measured.check
        content, named = contents[path], listed[path].hour
        # The times of a scattered file, and so its first hour, may be wrong.
        doubted = check.name == SCATTERED and check.severity == "error" and not measured.success
        first = content.hours[0] if content.hours else UNKNOWN_HOUR
        hour = named or (UNKNOWN_HOUR if doubted else first)
        result = check_result_of(partition_of("events", hour), measured, rules.waivers, path)
        if not result.success:
            if check.name == CAPTURES:
                sample = list(filter(None, [listed[path].misnamed]))
            elif check.name in drift[path]:
                sample = drift[path][check.name]
            else:
                sample = _sample(rules, rows, reads[path], check)
            result = result.with_failing_rows(sample[:SAMPLE])
            contents[path] = _marked(content, result)
        elif doubted:
            # A waiver accepts its times, so its hour is as of any other file.
            result = replace(result, partition=partition_of("events", named or content.hours[0]))
        results.append(result)
    return contents, results


class _Rules:
    """The rules for files, compiled once.

    Attributes:
        declared: the SQL conditions of the stream's own checks of events, by metric.
        keys: the key columns that events need.
        conditions: the conditions, as Spark SQL, of the events that are counted in every file, by metric.
        uses: the columns that blocks read in some events only.
        checks: all checks of a file.
        waivers: the waivers of the stream.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        rules, types = declared(stream, "ingest"), stream.event_types
        self.declared = {
            rule.metric: row_meets(rule.every, types) for rule in rules if rule.every is not None
        }
        self.keys = required_keys(stream)
        self.conditions = {key.metric: key.lacking for key in self.keys} | self.declared
        uses = (use for block in stream.columns_read for use in block.all_uses)
        self.uses = [use for use in uses if use.columns and use.where is not None]
        self.checks, self.waivers = file_checks(stream), waivers_of(stream)
        self._used = cache(self._columns_read)

    def used(self, reached: Iterable[str]) -> set[str]:
        """Return the columns that blocks read.

        Args:
            reached: the metrics of the `uses` that some event needs.
        """
        return self._used(frozenset(reached))

    def _columns_read(self, reached: frozenset[str]) -> set[str]:
        return columns_read(self.stream, lambda use: use.where is None or use.metric in reached)


def conditions_of(stream: Stream) -> dict[str, str]:
    """Return the conditions, as Spark SQL, of the events that are counted in every file, by metric."""
    return _Rules(stream).conditions


def _counts(rules: _Rules, reads: Mapping[str, FileReadResult], rows: ParsedRows) -> Counts:
    """Return for each file how many events lack each key column and meet each declared rule.

    If a file lacks a column, also how many events need the columns of each use.
    """
    counts: dict[str, dict[str, int]] = {path: {} for path in reads}
    uses = {use.metric: f"coalesce({use.where}, {str(use.decides).lower()})" for use in rules.uses}
    lacking = any(read.summary is not None and read.summary.absent for read in reads.values())
    unread: dict[frozenset[str], list[str]] = {}
    for path, read in reads.items():
        wanted = set(uses) if lacking else set()
        known = rules.conditions.keys() if path in rows.aggregates else set()
        for row in rows.aggregates.get(path, {}).values():
            known = known & row.keys()
            for name in known:
                counts[path][name] = counts[path].get(name, 0) + (row[name] or 0)
        wanted |= rules.conditions.keys() - known
        if wanted and read.events:
            unread.setdefault(frozenset(wanted), []).append(path)
    for names, paths in unread.items():
        sql = {**rules.conditions, **uses}
        columns = (F.expr(rows_where(sql[name])).alias(name) for name in sorted(names))
        path_of = {file.name: path for path in paths for file in reads[path].events}
        with suited_to(rows.store.spark, sum(reads[path].rows for path in paths)):
            groups = rows.events(reads[path] for path in paths).groupBy(PART).agg(*columns).toArrow()
        for row in groups.to_pylist():
            of_path = counts[path_of[row.pop(PART)]]
            for name, count in row.items():
                of_path[name] = of_path.get(name, 0) + (count or 0)
    return counts


def _is_scattered(rules: _Rules, listed: ListedFile, read: FileReadResult) -> bool:
    """Return whether a file is quarantined because its events are in too many hours.

    If a wrong field is parsed as the time, there can be as many hours as lines. So the driver and the ledger
    get nothing else of such a file. It is quarantined in the hour of its name.
    """
    for check in rules.checks:
        bound = check.at_most if check.name == SCATTERED and check.severity == "error" else None
        if bound is not None and len(read.hours) > bound:
            key = partition_of("events", listed.hour or UNKNOWN_HOUR)
            measured = MetricResult(check, 0, len(read.hours), success=False)
            return not check_result_of(key, measured, rules.waivers).success
    return False


def _drift(rules: _Rules, read: FileReadResult, counts: Mapping[str, int] | None) -> dict[str, list[str]]:
    """Return the names that fail each check of a file's fields.

    Args:
        counts: the counts of the file. None if nothing of it was counted; then every use counts as needed.
    """
    unknown = [] if read.summary is None else list(read.summary.unknown)
    absent = [] if read.summary is None else list(read.summary.absent)
    used: set[str] = set()
    if absent:
        metrics = (use.metric for use in rules.uses)
        used = rules.used(name for name in metrics if counts is None or counts.get(name))
    used_absent = [name for name in absent if name in used]
    return {"fields_known": unknown, "fields_present": absent, "used_fields_present": used_absent}


def _content(file: ListedFile, read: FileReadResult, scattered: bool) -> FileContent:
    summary = read.summary
    if summary is None:
        failed = f"cannot be read: {read.unreadable}"
        return FileContent("", "", 0, 0, 0, 0, 0, None, None, (), (), {}, failed=failed)
    content = FileContent(
        source_id=source_id(summary.sha256, **file.identity), digest=summary.sha256, bytes=summary.bytes,
        lines=summary.lines, header_lines=summary.header_lines, accepted=summary.accepted,
        rejected=summary.rejected, first_event=read.first_event, last_event=read.last_event,
        columns=summary.columns, hours=tuple(map(moment_of, read.hours.tolist())),
        prefixes=summary.prefix_digests, broken=summary.broken,
    )  # fmt: skip
    return replace(content, first_event=None, last_event=None, hours=()) if scattered else content


def _metrics(
    content: FileContent, read: FileReadResult, counts: Mapping[str, int], span: Span | None, rules: _Rules
) -> dict[str, float | None]:
    events = sum(file.rows for file in read.events)
    # A broken file has its own check, and its cut line may be the only one.
    cut = content.broken is not None
    data_lines = content.lines - content.header_lines - cut
    share = (content.rejected - cut) / data_lines if data_lines else 0.0
    few = events > 0 and data_lines < MIN_LINES_FOR_SHARE and "rejected_share" not in rules.stream.checks
    nul_bytes = 0 if read.summary is None else read.summary.nul_bytes
    metrics: dict[str, float | None] = {
        # Events include duplicates; those are marked later.
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
        metrics["ambiguous"] = read.summary.ambiguous
    metrics |= {key.metric: counts.get(key.metric, 0) for key in rules.keys}
    return metrics | {name: counts.get(name, 0) / events if events else None for name in rules.declared}


def _seconds_outside(content: FileContent, span: Span | None) -> float:
    """Return by how many seconds events of a file are outside its span; the parser rejects such lines."""
    if span is None or content.first_event is None or content.last_event is None:
        return 0.0
    last = span.end - timedelta.resolution
    return max((span.start - content.first_event) / SECOND, (content.last_event - last) / SECOND, 0.0)


def _marked(content: FileContent, result: CheckResult) -> FileContent:
    """Return a content with the text of a failed check."""
    text = format_failure(result)
    if result.check == "file_readable" and content.broken is not None:
        text = f"{result.check}: {content.broken}"
    elif result.check == CAPTURES and result.failing_rows:
        text = f"{result.check}: {result.failing_rows[0]}"
    match result.severity:
        case "error":
            return replace(content, failed="; ".join(filter(None, (content.failed, text))))
        case "incomplete":
            return replace(content, lacks="; ".join(filter(None, (content.lacks, text))))
        case "warning":
            return content


def _sample(rules: _Rules, rows: ParsedRows, read: FileReadResult, check: Check) -> list[str]:
    """Return some failing rows as text: events if the check counts events, else rejected lines."""
    if check.metric == "ambiguous":
        line = None if read.summary is None else read.summary.ambiguous_line
        return [f"line {line} is the first of them"]
    faults = {metric: f"NOT {meets}" for metric, meets in rules.declared.items()}
    if check.name == KEYS:
        faults = {key.metric: key.lacking for key in rules.keys}
    if check.metric in faults or check.name == SCATTERED:
        columns, order = ["source_line", *rules.stream.event_columns], ["source_line"]
        events = rows.events([read])
        if check.metric in faults:
            events = events.where(faults[check.metric])
        else:
            columns, order = ["source_line", "event_time"], ["event_time", "source_line"]
        shown = sample_failing_rows(events, columns, order=order)
        return [f"line {row.pop('source_line')}: {format_row(row)}" for row in shown]
    columns = ["source_line", "reason", "raw"]
    shown = sample_failing_rows(rows.rejected([read]), columns, order=["source_line"])
    return [f"line {row['source_line']}: {row['reason']}: {row['raw']}" for row in shown]
