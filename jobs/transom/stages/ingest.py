"""The ingest stage: files of the landing folder become events, rejections and rows of `files`.

A run looks at the files of its hours, reads those that may have changed, decides on each as a whole
(`transom.stages.files`), and publishes in one go every hour that a new, changed or withdrawn file
touches: the stored rows of the other files and the new ones.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.intervals import HOUR, Interval, hour_of
from transom.lake import digest as digests
from transom.lake.acceptance import accept
from transom.lake.ledger import EMPTY_DIGEST, Book, Entry, Ledger, Node, Verdict
from transom.lake.publishing import publish
from transom.lake.quality import Check, judge
from transom.lake.refresh import SAMPLE, Outcome
from transom.lake.staleness import asked, fingerprint
from transom.lake.store import Pins, Store, Write
from transom.lake.tables import Table
from transom.stages.aggregate import SPARK_TYPES
from transom.stages.checks import accepted_of, built_in, declared, holds
from transom.stages.files import (
    Content,
    Decisions,
    File,
    HourState,
    Listed,
    Rules,
    decide,
    has_to_be_read,
    hour_states,
    source_id,
)
from transom.stages.landing import LandingError, absolute, is_there, listed
from transom.stages.parsing import Reading, parsed
from transom.stream import Stream

STAGE = "ingest"
BLOCK = "events"
VERSION = 1


@dataclass(frozen=True)
class Tables:
    """The tables of a stream's ingest."""

    events: Table
    rejected: Table
    files: Table

    @classmethod
    def of(cls, stream: Stream) -> "Tables":
        """The tables, with the columns that the stream declares."""
        columns = {name: SPARK_TYPES[field.type] for name, field in stream.event_columns.items()}
        return cls(Table.load("events").declare(columns=columns), Table.load("rejected"), Table.load("files"))

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter((self.events, self.rejected, self.files))


def ingest(
    store: Store,
    ledger: Ledger,
    stream: Stream,
    interval: Interval,
    run_id: str,
    elsewhere: Interval | None = None,
) -> Outcome:
    """Brings `events`, `rejected` and `files` up to date over an interval.

    Args:
        elsewhere: the whole stretch, where the interval is a chunk of it.

    Raises:
        LandingError: the landing folder is not there.
    """
    tables = Tables.of(stream)
    book, pins = _consistent(store, ledger, tables)
    known = {file.path: file for file in map(File.of_row, pins.read("files").toArrow().to_pylist())}
    there = listed(stream.path_pattern)
    hours = set(asked(interval, book.hours(STAGE), stream.heal))
    window = interval.widen(before=stream.heal, after=stream.heal)
    series = book.series(STAGE, BLOCK, "events")

    def permitted(hour: datetime) -> bool:
        if elsewhere is not None and hour in elsewhere:
            return hour < interval.end
        return hour in hours or (window.start <= hour < interval.end) or (hour in window and hour in series)

    def looked_at(hour: datetime) -> bool:
        return hour in hours or (hour in window and hour in series)

    rules = Rules(
        fingerprint([stream.ingest_shape(), VERSION]), stream.source.on_change == "replace", permitted
    )
    in_scope = {path for path, file in there.items() if any(map(looked_at, _named(file)))}
    in_scope |= {path for path, file in there.items() if file.hour is None}
    in_scope |= {path for path, file in known.items() if path not in there and looked_at(file.hour)}
    to_read = {
        path for path in in_scope & there.keys() if has_to_be_read(there[path], known.get(path), rules)
    }
    late = _late(there, known, in_scope, series, rules)

    read: dict[str, Content] = {}
    frames: list[DataFrame] = []
    verdicts: list[Verdict] = []
    numbers: dict[str, tuple[int, DataFrame]] = {}
    lines = 0
    try:
        while True:
            if to_read:
                readings = _readings(stream, there, known, to_read, start=len(numbers))
                frame = parsed(store.spark, readings, stream.layout(), _types(stream)).persist()
                frames.append(frame)
                contents, seen = _contents(stream, there, readings, frame)
                read |= contents
                verdicts += seen
                lines += sum(content.lines for content in contents.values())
                numbers |= {reading.path: (reading.number, frame) for reading in readings}
            # A file that vanished between listing and reading is as good as never listed.
            present = {path: file for path, file in there.items() if path not in to_read or path in read}
            decisions = decide(known, present, read, in_scope, rules)
            if not decisions.unread:
                break
            to_read = set(decisions.unread)
        outcome = _publish(
            store,
            ledger,
            stream,
            tables,
            book,
            pins,
            known,
            decisions,
            late,
            numbers,
            verdicts,
            hours,
            run_id,
            rules,
        )
    finally:
        for frame in frames:
            frame.unpersist()
    outcome.work |= {
        "files_listed": len(there),
        "files_read": len(read),
        "lines_read": lines,
        "files_waiting": len(late) + sum(f.status == "waiting" for f in decisions.files.values()),
    }
    return outcome


def _consistent(store: Store, ledger: Ledger, tables: Tables) -> tuple[Book, Pins]:
    while True:
        book = ledger.book([STAGE])
        pins = store.pin(table.name for table in tables)
        if ledger.book([STAGE]) == book:
            return book, pins


def _named(file: Listed) -> Iterable[datetime]:
    """The hours that a file's name declares."""
    if file.start is None or file.end is None:
        return
    hour = hour_of(file.start)
    while hour < file.end:
        yield hour
        hour += HOUR


def _late(
    there: Mapping[str, Listed],
    known: Mapping[str, File],
    in_scope: set[str],
    series: Mapping[datetime, Entry],
    rules: Rules,
) -> dict[str, File]:
    """Files that came too late for this run, of hours that were asked for before: listed as waiting."""
    return {
        path: File(
            path=path, hour=file.hour, status="waiting", source_id=None, seen_id=None, content=None,
            shape=rules.shape, bytes=0, lines=0, header_lines=0, accepted=0, rejected=0, duplicates=0,
            first_event=None, last_event=None, columns=(), hours=(),
            detail=f"came later than `heal`; run {file.hour:%Y-%m-%dT%H:%M} again to take it",
            size=-1, modified=file.modified,
        )
        for path, file in there.items()
        if path not in in_scope and path not in known and file.hour is not None and file.hour in series
    }  # fmt: skip


def _types(stream: Stream) -> dict[str, str]:
    return {name: SPARK_TYPES[field.type] for name, field in stream.event_columns.items()}


def _readings(
    stream: Stream, there: Mapping[str, Listed], known: Mapping[str, File], paths: Iterable[str], start: int
) -> list[Reading]:
    readings = []
    for number, path in enumerate(sorted(paths), start):
        file = there[path]
        match = stream.path_pattern.match(path)
        assert match is not None  # it would not be listed
        span = stream.span(match)
        stands = known.get(path)
        lengths = (stands.bytes,) if stands is not None and stands.source_id is not None else ()
        readings.append(Reading(number, path, absolute(path), file.size, file.captures, span, lengths))
    return readings


def _contents(
    stream: Stream, there: Mapping[str, Listed], readings: Sequence[Reading], frame: DataFrame
) -> tuple[dict[str, Content], list[Verdict]]:
    """What was read of each file, and what its checks saw."""
    paths = {reading.number: reading.path for reading in readings}
    rules = declared(stream, "ingest")
    keys = sorted({column for block in stream.aggregate.values() for column in block.key} | set(stream.key))
    null_key = F.lit(False)
    for column in keys:
        null_key = null_key | F.col(f"`{column}`").isNull()
    events = frame.where("__summary IS NULL AND __reason IS NULL")
    hour = F.date_trunc("hour", "event_time")
    by_hour = events.groupBy("__file", hour.alias("hour")).agg(
        F.count("*").alias("events"),
        F.sum(null_key.cast("bigint")).alias("null_keys"),
        F.sum(_outside(hour).cast("bigint")).alias("outside"),
        F.min("event_time").alias("first"),
        F.max("event_time").alias("last"),
        *(
            holds(rule.every, stream.event_types).alias(rule.metric)
            for rule in rules
            if rule.every is not None
        ),
    )
    hours: dict[str, list[dict[str, Any]]] = {path: [] for path in paths.values()}
    for row in by_hour.toArrow().to_pylist():
        hours[paths[row["__file"]]].append(row)
    contents: dict[str, Content] = {}
    metrics: dict[str, dict[str, float | None]] = {}
    for row in frame.where("__summary IS NOT NULL").select("__file", "__summary").toArrow().to_pylist():
        path, facts = paths[row["__file"]], json.loads(row["__summary"])
        if facts.get("vanished"):
            if is_there(path):
                raise LandingError(f"{path}: the driver sees this file and an executor does not")
            continue
        contents[path] = _content(there[path], facts, hours[path])
        metrics[path] = _metrics(contents[path], hours[path], rules)
    return _judged(stream, there, contents, metrics, frame, {p: n for n, p in paths.items()})


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
    there: Mapping[str, Listed],
    contents: dict[str, Content],
    metrics: Mapping[str, Mapping[str, float | None]],
    frame: DataFrame,
    numbers: Mapping[str, int],
) -> tuple[dict[str, Content], list[Verdict]]:
    from dataclasses import replace

    from transom.stages.files import NO_HOUR

    paths = sorted(metrics)
    verdicts = []
    for finding in judge(file_checks(stream), [metrics[path] for path in paths]):
        path = paths[finding.row]
        content = contents[path]
        hour = there[path].hour or (content.hours[0] if content.hours else NO_HOUR)
        verdict = accept(
            Verdict(
                Node(STAGE, BLOCK, "events", hour),
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


def _publish(
    store: Store,
    ledger: Ledger,
    stream: Stream,
    tables: Tables,
    book: Book,
    pins: Pins,
    known: Mapping[str, File],
    decisions: Decisions,
    late: Mapping[str, File],
    numbers: Mapping[str, tuple[int, DataFrame]],
    verdicts: Sequence[Verdict],
    hours: set[datetime],
    run_id: str,
    rules: Rules,
) -> Outcome:
    after = {**known, **late, **decisions.files}
    for path in decisions.forgotten:
        del after[path]
    changed = set(hours) | {file.hour for file in late.values()}
    for path, file in {**decisions.files, **late}.items():
        changed |= file.touched | (known[path].touched if path in known else frozenset())
    for touched in [*decisions.removed.values(), *(known[path].touched for path in decisions.forgotten)]:
        changed |= touched
    states = hour_states(after.values(), changed)
    entries, checks = _entries(stream, book, states, changed, run_id, rules)
    # An hour that was asked for and comes out as it stands is left alone.
    settled = {
        hour
        for hour in hours
        if not any(hour in file.touched for file in {**decisions.files, **late}.values())
        and not any(hour in touched for touched in decisions.removed.values())
        and not any(hour in known[p].touched for p in {*decisions.files, *decisions.forgotten} & known.keys())
        and _as_it_stands(book, hour, entries)
    }
    publishing = sorted(changed - settled)
    if not publishing:
        return Outcome()
    rows = {
        "events": _events(tables.events, pins, decisions, numbers, publishing),
        "rejected": _rejected(tables.rejected, pins, decisions, numbers, publishing, after),
        "files": store.spark.createDataFrame(
            [file.row() for file in after.values() if file.hour in set(publishing)],
            ", ".join(f"`{name}` {kind}" for name, kind in tables.files.columns.items()),
        ),
    }
    outcome = Outcome(hours_healed=len(set(publishing) - hours))
    writes, results, held = [], {}, []
    try:
        for table in tables:
            frame = rows[table.name]
            hashed = frame.withColumn(digests.HASH, digests.row_hash(frame, table.promised())).persist()
            held.append(hashed)
            figures = {
                row["hour"].astimezone(UTC): (row["count"], row["digest"])
                for row in hashed.groupBy("hour")
                .agg(
                    F.count("*").alias("count"),
                    digests.digest_of(F.count("*"), digests.total_hash(F.col(digests.HASH))).alias("digest"),
                )
                .toArrow()
                .to_pylist()
            }
            for hour in publishing:
                count, digest = figures.get(hour, (0, EMPTY_DIGEST))
                entry = entries[hour]
                results[Node(STAGE, BLOCK, table.name, hour)] = Entry(
                    entry.status, run_id, entry.complete, digest, entry.inputs, count, entry.cause
                )
                outcome.rows_out += count if table.name == "events" else 0
            writes.append(Write(table, hashed.drop(digests.HASH), {None: publishing}))
        outcome.quarantined = sum(entries[hour].status == "quarantined" for hour in publishing)
        outcome.published = len(publishing) - outcome.quarantined
        kept = [v for v in [*verdicts, *checks] if v.node.hour in set(publishing)]
        kept += _still_standing(ledger, book, set(publishing), kept)
        publish(store, ledger, STAGE, run_id, writes, results, book, kept)
    finally:
        for frame in held:
            frame.unpersist()
    return outcome


def _still_standing(
    ledger: Ledger, book: Book, hours: set[datetime], fresh: Sequence[Verdict]
) -> list[Verdict]:
    """What earlier runs saw in files of these hours that were not read again."""
    again = {(v.node.hour, v.subject) for v in fresh}
    earlier = ledger.checks(book, STAGE, hours)
    return [v for v in earlier if v.subject is not None and (v.node.hour, v.subject) not in again]


def _as_it_stands(book: Book, hour: datetime, entries: Mapping[datetime, Entry]) -> bool:
    held = book.get(Node(STAGE, BLOCK, "events", hour))
    new = entries[hour]
    return held is not None and (held.status, held.complete, held.inputs, held.cause) == (
        new.status, new.complete, new.inputs, new.cause,
    )  # fmt: skip


def _entries(
    stream: Stream,
    book: Book,
    states: Mapping[datetime, HourState],
    hours: Iterable[datetime],
    run_id: str,
    rules: Rules,
) -> tuple[dict[datetime, Entry], list[Verdict]]:
    """Status and completeness of each hour, as its files have it."""
    ordered = sorted(hours)
    expected = stream.source.expect
    checks = built_in(stream, "files_expected", metric="files", at_least=expected) if expected else ()
    verdicts = [
        accept(
            Verdict(
                Node(STAGE, BLOCK, "events", ordered[finding.row]),
                finding.check.name,
                finding.check.severity,
                finding.observed,
                finding.check.expected,
                finding.success,
            ),
            accepted_of(stream),
        )
        for finding in judge(checks, [{"files": states[hour].files} for hour in ordered])
    ]
    short = {
        v.node.hour: f"files_expected: observed {v.observed:g}, expected {v.expected}"
        for v in verdicts
        if not v.success and v.severity == "incomplete"
    }
    inputs = {"specification": rules.shape, "version": str(VERSION)}
    entries = {}
    for hour in ordered:
        state = states[hour]
        missing = [*state.missing, *([short[hour]] if hour in short else [])]
        status = "quarantined" if state.withheld else "published"
        cause = "; ".join(state.withheld or missing) or None
        entries[hour] = Entry(status, run_id, not (missing or state.withheld), EMPTY_DIGEST, inputs, 0, cause)  # type: ignore[arg-type]
    return entries, verdicts


def _events(
    table: Table,
    pins: Pins,
    decisions: Decisions,
    numbers: Mapping[str, tuple[int, DataFrame]],
    hours: Sequence[datetime],
) -> DataFrame:
    stored = _stored(pins, "events", decisions, hours)
    for frame, sources in _added(decisions, numbers):
        new = _with_source(frame.where("__summary IS NULL AND __reason IS NULL"), sources)
        new = new.withColumn("hour", F.date_trunc("hour", "event_time"))
        stored = stored.select(*table.columns).unionByName(new.select(*table.columns))
    return stored


def _rejected(
    table: Table,
    pins: Pins,
    decisions: Decisions,
    numbers: Mapping[str, tuple[int, DataFrame]],
    hours: Sequence[datetime],
    files: Mapping[str, File],
) -> DataFrame:
    stored = _stored(pins, "rejected", decisions, hours)
    for frame, sources in _added(decisions, numbers):
        hour_of_source = {source: files[decisions.added[source]].hour for source in sources}
        new = _with_source(frame.where("__reason IS NOT NULL"), sources)
        new = new.withColumn("hour", _lookup("source_id", hour_of_source)).select(
            "hour",
            "source_id",
            "source_line",
            *(F.col(f"__{n}").alias(n) for n in ("raw", "reason", "column", "detail")),
        )
        stored = stored.select(*table.columns).unionByName(new.select(*table.columns))
    return stored


def _stored(pins: Pins, table: str, decisions: Decisions, hours: Sequence[datetime]) -> DataFrame:
    rows = pins.read(table, hours)
    leaving = sorted(decisions.removed.keys() | decisions.added.keys())
    return rows.where(~F.col("source_id").isin(leaving)) if leaving else rows


def _added(
    decisions: Decisions, numbers: Mapping[str, tuple[int, DataFrame]]
) -> list[tuple[DataFrame, dict[str, int]]]:
    """The frames that new rows come from, each with the number of every source in it."""
    frames: dict[int, tuple[DataFrame, dict[str, int]]] = {}
    for source, path in decisions.added.items():
        number, frame = numbers[path]
        frames.setdefault(id(frame), (frame, {}))[1][source] = number
    return list(frames.values())


def _with_source(frame: DataFrame, sources: Mapping[str, int]) -> DataFrame:
    by_number = {number: source for source, number in sources.items()}
    named = frame.where(F.col("__file").isin(sorted(by_number)))
    return named.withColumn("source_id", _lookup("__file", by_number))


def _lookup(column: str, values: Mapping[Any, Any]) -> Column:
    pairs = [F.lit(item) for pair in values.items() for item in pair]
    return F.create_map(*pairs)[F.col(column)]
