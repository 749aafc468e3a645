"""The table `findings`: what a person reads in the morning. No Spark.

Each stage has rows of its own. Those that come from its ledger are a function of the ledger as it stands,
made anew at the end of every run: a run that has no other work mends what a killed one has left, and most
runs have nothing to write.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC
from operator import attrgetter
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.findings.from_ledger import KINDS, SEVERITIES, Finding, from_ledger
from transom.ledger.ledger import Ledger
from transom.spec.checks import OF_INGEST, BuiltIn
from transom.spec.feature import USUAL_PLACE, FindingOrder
from transom.storage.tables import ATTEMPTS, Table, instant, query, read_rows

NAME = "findings"
_ID = attrgetter("finding_id")
COLUMNS = tuple(field.name for field in fields(Finding))


def findings(
    root: str,
    interval: Interval | None = None,
    kinds: Iterable[str] | None = None,
    order: Sequence[FindingOrder] = (),
) -> list[Finding]:
    """Return what is found, the worst first; of alerts there may be millions.

    Args:
        root: the stream's folder in the lake.
        interval: only what its hours reported, from the first hour that reported it to the last or to its
            end, and what belongs to no hour; None is everything.
        kinds: only these; None is all.
        order: of the kinds that do not come with all others.
    """
    rows = _ask(root, f"SELECT * FROM t WHERE {_where(interval, kinds)} ORDER BY {_rank(order)}")
    return list(map(_of_row, rows))


@dataclass(frozen=True)
class Selection:
    """Some findings of each kind and block, and how many more there are.

    Attributes:
        findings: the worst first.
        more: of each kind and block that has more, the block, and how many are left out, most first.
    """

    findings: tuple[Finding, ...]
    more: tuple[tuple[str, str | None, int], ...]

    @property
    def rest(self) -> str | None:
        """What is left out, in one line; None where that is nothing."""
        if not self.more:
            return None
        kinds = (f"{number} {kind}{f' of {block}' if block else ''}" for kind, block, number in self.more)
        total = sum(number for _, _, number in self.more)
        return f"... and {total} more in the table findings: {', '.join(kinds)}"


def select_findings(
    root: str, most: int, each: int, order: Sequence[FindingOrder], interval: Interval | None = None
) -> Selection:
    """Return some findings of each kind and block, so that many of one kind hide no other.

    Args:
        root, order, interval: as in `findings`.
        most: how many in all, 1 or more; of each kind and block the worst one is there, whatever this says.
        each: how many of a kind and block at most, 1 or more.
    """
    rank = _rank(order)
    groups = (
        f"SELECT *, row_number() OVER (PARTITION BY kind, block ORDER BY {rank}) AS __place, "
        "count(*) OVER (PARTITION BY kind, block) AS __many "
        f"FROM t WHERE {_where(interval, None)}"
    )
    # One of each first, then the second ones.
    rows = _ask(
        root,
        f"SELECT * FROM (SELECT *, row_number() OVER (ORDER BY __place, {rank}) AS __turn FROM ({groups}) "
        f"WHERE __place <= {each}) WHERE __turn <= {most} OR __place = 1 ORDER BY {rank}",
    )
    left = {(row["kind"], row["block"]): row["__many"] for row in rows}
    for row in rows:
        left[row["kind"], row["block"]] -= 1
    more = sorted(
        ((kind, block, number) for (kind, block), number in left.items() if number),
        key=lambda group: (-group[2], group[0], group[1] or ""),
    )
    return Selection(tuple(map(_of_row, rows)), tuple(more))


def count_findings(root: str, interval: Interval | None = None) -> int:
    """How many findings there are.

    Args:
        root, interval: as in `findings`.
    """
    rows = _ask(root, f"SELECT count(*) AS many FROM t WHERE {_where(interval, None)}")
    return sum(row["many"] for row in rows)


def stages(root: str) -> set[str]:
    """The stages of which there are findings.

    Args:
        root: as in `findings`.
    """
    return {row["stage"] for row in _ask(root, "SELECT DISTINCT stage FROM t")}


def _ask(root: str, sql: str) -> list[dict[str, Any]]:
    try:
        table = DeltaTable(f"{root}/{NAME}")
    except TableNotFoundError:
        return []
    rows: list[dict[str, Any]] = query(table, sql).to_pylist()
    return rows


def _rank(order: Iterable[FindingOrder]) -> str:
    """How findings are ordered in SQL, the worst first: by severity, then what is urgent, then the place of
    their kind."""
    worst = f"ongoing AND severity = '{SEVERITIES[0]}'"
    places = ["CASE WHEN FALSE THEN 0"]
    times = ["CASE WHEN FALSE THEN start_time"]
    for of in order:
        places += [f"WHEN kind = '{of.kind}' AND {worst} THEN -1"] if of.urgent else []
        places.append(f"WHEN kind = '{of.kind}' THEN {of.place}")
        times += [f"WHEN kind = '{of.kind}' THEN start_time"] if of.latest_first else []
    severities = " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(SEVERITIES))
    return (
        f"CASE severity {severities} END, {' '.join(places)} ELSE {USUAL_PLACE} END, "
        f"{' '.join(times)} END DESC NULLS LAST, start_time NULLS FIRST, finding_id"
    )


def _where(interval: Interval | None, kinds: Iterable[str] | None) -> str:
    """A condition on findings, as `findings` is asked for them."""
    where = "TRUE"
    if kinds is not None:
        listed = ", ".join(f"'{kind}'" for kind in kinds)
        where += f" AND kind IN ({listed})"
    if interval is not None:
        start, end = instant(interval.start), instant(interval.end)
        # What a stage reports only when it is long past belongs to the hours that report it.
        first = "coalesce(first_hour, start_time)"
        last = "greatest(hour + INTERVAL '1 hour', end_time)"
        where += f" AND (start_time IS NULL OR end_time IS NULL OR ({first} < {end} AND {start} < {last}))"
    return where


def publish(
    ledger: Ledger,
    stream: str,
    stage: str,
    stale: Mapping[PartitionKey, PartitionState | None],
    rules: Mapping[str, BuiltIn] = OF_INGEST,
    noun: str = "events",
) -> bool:
    """Brings a stage's findings up to date with its ledger.

    The table is opened before the ledger is read, and a commit that meets another one is made again from
    the start; so is one that has been written, until nothing is left to write. So a slow run leaves nothing
    older than what a later one has found.

    Args:
        stale: what the run saw to be out of date and left; what has changed since is not.
        rules: the checks that transom makes, by name.
        noun: what the rows of the stage are called.

    Returns:
        Whether something was written.
    """
    ledger.create(Table.load(NAME))
    written = False
    for _ in range(ATTEMPTS):
        held = ledger.open(NAME)
        wanted = _current_findings(ledger, stream, stage, stale, rules, noun)
        if sorted(_read(held, _of_ledger(stage)), key=_ID) == sorted(wanted, key=_ID):
            return written
        try:
            replace(held, _of_ledger(stage), wanted)
            written = True
        except CommitFailedError:
            continue
    raise CommitFailedError(f"{stage}: findings were written by others at every one of {ATTEMPTS} attempts")


def _current_findings(
    ledger: Ledger,
    stream: str,
    stage: str,
    stale: Mapping[PartitionKey, PartitionState | None],
    rules: Mapping[str, BuiltIn],
    noun: str,
) -> list[Finding]:
    book = ledger.snapshot([stage])
    if any(entry.status == "blocked" for _, entry in book.troubled()):
        book = ledger.snapshot()
    left = [node for node, seen in stale.items() if book.get(node) == seen]
    return from_ledger(stream, stage, book, ledger.failures(book, stage), left, rules, noun)


def _of_ledger(stage: str) -> str:
    kinds = ", ".join(f"'{kind}'" for kind in KINDS)
    return f"stage = '{stage}' AND kind IN ({kinds})"


def replace(table: DeltaTable, condition: str, some: Iterable[Finding]) -> None:
    """Replace the findings that meet an SQL condition.

    Raises:
        CommitFailedError: the table has changed since it was opened. Only findings that are made from the
            ledger and the rows as they are after that may follow.
    """
    once = CommitProperties(max_commit_retries=0)
    write_deltalake(table, to_arrow(some), mode="overwrite", predicate=condition, commit_properties=once)


def to_arrow(some: Iterable[Finding]) -> pa.Table:
    """Return findings as rows of the table."""
    rows = [vars(finding) | {"evidence": list(finding.evidence)} for finding in some]
    return pa.Table.from_pylist(rows, schema=Table.load(NAME).arrow_schema())


def _read(table: DeltaTable, where: str = "TRUE") -> list[Finding]:
    return [_of_row(row) for row in read_rows(table, where)]


def _of_row(row: Mapping[str, Any]) -> Finding:
    held = {name: row[name] for name in COLUMNS}
    for name in ("hour", "start_time", "end_time", "first_hour"):
        held[name] = held[name] and held[name].astimezone(UTC)
    return Finding(**held | {"evidence": tuple(row["evidence"] or ())})
