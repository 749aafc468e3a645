"""Alerts as findings: one for each alert, level, key and hour, beside those of the ledger. No Spark.

The rows that an hour has in `findings` are a function of its rows in `alerts` and of the stream's words for
them. Each carries a hash of both, so that any run sees which hours say something else than what stands, and
writes these alone: a run that has no other work mends what a killed one has left.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from operator import itemgetter

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from transom.intervals import format_hour
from transom.lake.book import Book, Entry
from transom.lake.findings import NAME
from transom.lake.ledger import Ledger
from transom.lake.staleness import fingerprint
from transom.lake.tables import ATTEMPTS, Table, create, in_hours_sql, query
from transom.stream import Stream
from transom.stream.alerts import Alert, figures, parts_of
from transom.units import format_duration

STAGE, TABLE, KIND = "aggregate", "alerts", "alert"
VERSION = 2
"""Of the words; raised when the code says something else of the same rows."""
MOST = 250_000
"""Rows of alerts that one commit is made of, where an hour alone has not more."""

Hours = Mapping[tuple[str, datetime], str | None]
"""What an hour of a block stands for, None where nothing."""


def publish(ledger: Ledger, stream: Stream) -> bool:
    """Brings the findings up to date with the alerts.

    Hours that are not published, or by another specification, keep what they say: the run that publishes
    them makes it anew. A commit that meets another one is made again from the start.

    Returns:
        Whether something was written.
    """
    table = Table.load(NAME)
    create(ledger.root, table)
    written = False
    refused = 0
    done: set[tuple[tuple[str, datetime], str | None]] = set()
    while refused < ATTEMPTS:
        held = DeltaTable(f"{ledger.root}/{NAME}")
        book, rows = _consistent(ledger)
        differing = {at: m for at, m in _differing(held, book, stream).items() if (at, m) not in done}
        if not differing:
            return written
        some = _first(differing, book)
        try:
            _replace(held, table, stream, rows, some)
            written = True
            done.update(some.items())
        except CommitFailedError:
            refused += 1
    raise CommitFailedError(f"{STAGE}: findings were written by others at every one of {ATTEMPTS} attempts")


def _consistent(ledger: Ledger) -> tuple[Book, DeltaTable | None]:
    """A ledger, and the table as it stood then: a change of the rows lies between a claim and a publication,
    and one of them would show."""
    while True:
        book = ledger.book([STAGE])
        uri = f"{ledger.root}/{TABLE}"
        rows = DeltaTable(uri) if DeltaTable.is_deltatable(uri) else None
        if ledger.book([STAGE]) is book:
            return book, rows


def _differing(held: DeltaTable, book: Book, stream: Stream) -> Hours:
    """The hours that say something else than what stands, with what they are to say."""
    told = query(held, f"SELECT DISTINCT block, hour, made_of FROM t WHERE {_OWN}").to_pylist()
    stands: dict[tuple[str, datetime], set[str]] = {}
    for row in told:
        stands.setdefault((row["block"], row["hour"]), set()).add(row["made_of"])
    asking = [block for block, declared in stream.aggregate.items() if declared.alert]
    words = {block: _words(stream, block) for block in asking}
    shapes = {block: fingerprint(stream.alerts_shape(block)) for block in asking}
    wanted: dict[tuple[str, datetime], str | None] = dict.fromkeys(stands)
    for node, entry in book.items():
        if node.table == TABLE and node.block in words:
            at = node.block, node.hour
            of_shape = (entry.inputs or {}).get("specification") == shapes[node.block]
            if entry.status == "published" and of_shape:
                wanted[at] = _made_of(entry, words[node.block]) if entry.rows else None
            else:
                wanted.pop(at, None)
    return {
        at: made_of
        for at, made_of in sorted(wanted.items(), key=itemgetter(0))
        if stands.get(at, set()) != ({made_of} if made_of else set())
    }


_OWN = f"stage = '{STAGE}' AND kind = '{KIND}'"


def _words(stream: Stream, block: str) -> object:
    """All that is said of a block's alerts beside their rows."""
    declared = stream.aggregate[block]
    said = {name: alert.model_dump(mode="json") for name, alert in declared.alert.items()}
    return [VERSION, stream.name, said, [str(level) for level in declared.levels]]


def _made_of(entry: Entry, words: object) -> str:
    return hashlib.sha256(json.dumps([entry.digest, words], sort_keys=True).encode()).hexdigest()[:24]


def _first(differing: Hours, book: Book) -> Hours:
    """As many of some hours as one commit takes, at least one."""
    rows = {(node.block, node.hour): entry.rows for node, entry in book.items() if node.table == TABLE}
    taken: dict[tuple[str, datetime], str | None] = {}
    total = 0
    for at, made_of in differing.items():
        total += rows.get(at, 0)
        if taken and total > MOST:
            break
        taken[at] = made_of
    return taken


def _replace(held: DeltaTable, table: Table, stream: Stream, rows: DeltaTable | None, hours: Hours) -> None:
    schema = table.arrow_schema()
    made = [schema.empty_table()]
    if rows is not None:
        for block, of_block in _by_block((at, m) for at, m in hours.items() if m is not None):
            for name in stream.aggregate[block].alert:
                found = query(rows, _sql(stream, block, name, of_block, table))
                made.append(found.cast(schema))
    where = " OR ".join(
        f"(block = '{block}' AND {in_hours_sql(of_block)})" for block, of_block in _by_block(hours.items())
    )
    write_deltalake(
        held,
        pa.concat_tables(made),
        mode="overwrite",
        predicate=f"{_OWN} AND ({where})",
        # Only what was made of the alerts as they are after this version may follow it.
        commit_properties=CommitProperties(max_commit_retries=0),
    )


def _by_block(
    hours: Iterable[tuple[tuple[str, datetime], str | None]],
) -> Iterator[tuple[str, dict[datetime, str | None]]]:
    blocks: dict[str, dict[datetime, str | None]] = {}
    for (block, hour), made_of in hours:
        blocks.setdefault(block, {})[hour] = made_of
    yield from blocks.items()


def _sql(stream: Stream, block: str, name: str, hours: Mapping[datetime, str | None], table: Table) -> str:
    """A query that makes the findings of an alert of its rows."""
    declared = stream.aggregate[block]
    alert, key = declared.alert[name], list(declared.key)
    met = stream.alert_conditions(block)[name]
    read = [column for column in figures(stream, block) if column in met.columns]
    of_last = ["complete", "count", *read]
    last = {column: f"last_value({_q(column)} ORDER BY window_end)" for column in of_last}
    grouped = ", ".join(["hour", "level", *map(_q, key)])
    one_hour = (
        f"SELECT {grouped}, count(*) AS __reports, min(window_start) AS __start, "
        "max(window_start) AS window_start, max(window_end) AS window_end, "
        + ", ".join(f"{value} AS {_q(column)}" for column, value in last.items())
        + f" FROM t WHERE block = '{block}' AND alert = '{name}' AND {in_hours_sql(hours)} GROUP BY {grouped}"
    )
    levels = list(reversed(declared.levels))
    said = " ".join(
        f"WHEN {number} THEN {_text(f'{format_duration(level.range)} every {format_duration(level.slide)}')}"
        for number, level in enumerate(levels)
    )
    level = f"CASE level {said} END"
    made_of = " ".join(f"WHEN {_text(format_hour(hour))} THEN '{hashed}'" for hour, hashed in hours.items())
    hour = "to_char(hour, '%Y-%m-%dT%H:%M')"
    # Lengths keep apart what else would run into each other, and null what is the text null.
    of_key = [
        f"CASE WHEN {_q(c)} IS NULL THEN '-' "
        f"ELSE concat(cast(octet_length({_shown(c)}) AS varchar), ':', {_shown(c)}) END"
        for c in key
    ]
    identity = ", '/', ".join(
        [_text("/".join([stream.name, STAGE, KIND, block, name])), "cast(level AS varchar)", hour, *of_key]
    )
    keys = [_shown(key[0])] if len(key) == 1 else [f"concat('{c}=', {_shown(c)})" for c in key]
    one_key = f"concat({', '.join(_joined(keys, ', '))})" if keys else "cast(NULL AS varchar)"
    seen = _joined([f"concat('{c} ', {_shown(c)})" for c in [*read, "count"] if c not in key], ", ")
    reports = "CASE __reports WHEN 1 THEN '1 report' ELSE concat(cast(__reports AS varchar), ' reports') END"
    told = [
        _text(f"the rule: {' '.join(alert.when.split())}"),
        f"concat('level ', cast(level AS varchar), ', ', {level}, ': ', {reports}, ' of the hour met it')",
        f"concat('the last one, to ', {_shown('window_end')}, ': ', {', '.join(seen)}, "
        "CASE WHEN complete THEN '' ELSE ', of hours that are incomplete' END)",
    ]
    values = {
        "stage": _text(STAGE),
        "hour": "hour",
        "finding_id": f"substr(encode(sha256(concat({identity})), 'hex'), 1, 24)",
        "kind": _text(KIND),
        "block": _text(block),
        "severity": _text(alert.severity),
        "title": _title(stream, block, name, alert, one_key if keys else None, level),
        "key": one_key,
        "item": "cast(NULL AS varchar)",
        "start": "__start",
        "end": "window_end",
        "ongoing": "false",
        "exactness": "'exact'",
        "evidence": f"make_array({', '.join(told)})",
        "made_of": f"CASE {hour} {made_of} END",
    }
    columns = ", ".join(f"{values[column]} AS {_q(column)}" for column in table.columns)
    return f"SELECT {columns} FROM ({one_hour})"


def _title(stream: Stream, block: str, name: str, alert: Alert, key: str | None, level: str) -> str:
    if alert.title is None:
        of = ["', '", key, "', '"] if key else ["', '"]
        until = [_text(", until "), _shown("window_end")]
        return f"concat({', '.join([_text(f'{stream.name}: {name} of {block}'), *of, level, *until])})"
    pieces = [
        piece
        for text, column in parts_of(alert.title)
        for piece in ([_text(text)] if text else []) + ([_shown(column)] if column else [])
    ]
    return f"concat({', '.join([_text(f'{stream.name}: '), *pieces])})"


def _shown(column: str) -> str:
    """A value as text, a time to the second."""
    if column in ("window_start", "window_end"):
        return f"to_char({column}, '%Y-%m-%dT%H:%M:%S')"
    return f"coalesce(cast({_q(column)} AS varchar), 'null')"


def _joined(texts: list[str], between: str) -> list[str]:
    return [piece for text in texts for piece in (_text(between), text)][1:]


def _q(name: str) -> str:
    return f'"{name}"'


def _text(text: str) -> str:
    quoted = text.replace("'", "''")
    return f"'{quoted}'"
