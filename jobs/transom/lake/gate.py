"""The gate of a stage: what the ledger says of an interval, in words. No Spark.

Red for withheld, blocked or unwritten hours of its own interval; a warning for hours outside that a run
healed or that stay stale, and for hours that are incomplete.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from transom.intervals import HOUR, NO_HOUR, Interval, format_hour, ranges
from transom.lake.book import FIRST, STANDS, Book, Entry, Node, Verdict
from transom.lake.findings import findings
from transom.lake.ledger import Ledger
from transom.lake.quality import written
from transom.lake.tables import Table
from transom.printed import escaped
from transom.stream.checks import BUILT_IN

SHOWN = 5
"""Stretches of stale hours that are told one by one."""


@dataclass(frozen=True)
class Judgement:
    """What a gate decides.

    Attributes:
        failures: a paragraph for each reason to stop; none: the next stage may run.
        warnings: what a person should know of.
        summary: one line.
    """

    failures: tuple[str, ...]
    warnings: tuple[str, ...]
    summary: str

    @property
    def passed(self) -> bool:
        """Whether the next stage may run."""
        return not self.failures


def judge(
    ledger: Ledger,
    stage: str,
    stream: str,
    interval: Interval,
    command: str,
    heal: timedelta = timedelta(days=2),
) -> Judgement:
    """Judges one stage over an interval.

    Args:
        command: what runs the stage again, with `{from}` and `{to}`; quoted with each failure.
        heal: how far around its interval a run of the stream mends hours; what is wrong there is a warning.
    """
    book = ledger.book([stage])
    own = sorted(node for node in book if node.hour in interval or node.hour == NO_HOUR)
    around = interval.widen(before=heal, after=heal)
    nearby = sorted(node for node in book if node.hour in around and node.hour not in interval)
    verdicts = ledger.checks(book, stage, {node.hour for node in [*own, *nearby]})
    failures = [_failure(book, nodes, verdicts, command, interval) for nodes in _bad(book, own)]
    due = ledger.book([FIRST]).due
    left_out = [hour for hour in interval.hours() if stage != FIRST and hour not in due]
    if left_out:
        failures.append(
            f"{stage} leaves out {_stretches(left_out)}, which {FIRST} has not been asked for; jobs/run.py "
            "over these hours runs them all"
        )
    missing = sorted(set(interval.hours()) - _made(book, stage) - set(left_out))
    if missing:
        failures.append(f"{stage} has not run for {_stretches(missing)}; {_filled(command, missing)}")
    warnings = [_failure(book, nodes, verdicts, command, interval) for nodes in _bad(book, nearby)]
    for cause, hours in _incomplete(book, own).items():
        warnings.append(f"incomplete: {_stretches(hours)}: {escaped(cause)}")
    warnings += [
        words(v) for v in verdicts if v.severity == "warning" and not v.success and v.node.hour in interval
    ]
    warnings += _stale(ledger, stage, command)
    bad = {node.hour for node in own if book[node].status not in STANDS}.union(missing, left_out)
    good = sum(hour not in bad for hour in interval.hours())
    lacking = {node.hour for node in own if _lacks(book[node])} - bad - {NO_HOUR}
    published = f"{good} of {len(interval)} hours published"
    if lacking:
        published += f" ({len(lacking)} of them incomplete)"
    summary = f"{stage} {stream} {interval}: {published}, {len(warnings)} warnings"
    return Judgement(tuple(failures), tuple(warnings), summary)


def _made(book: Book, stage: str) -> Set[datetime]:
    """The hours of which a stage has made every result; state may be there of others, which reach it."""
    if stage == FIRST:
        return book.due
    by_table: dict[str, set[datetime]] = {}
    for node in book:
        by_table.setdefault(node.table, set()).add(node.hour)
    results = [hours for table, hours in by_table.items() if not Table.load(table).state]
    return set.intersection(*results) if results else set()


def _bad(book: Book, nodes: Sequence[Node]) -> list[list[Node]]:
    """Nodes that are not published, those of one cause together."""
    groups: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        entry = book[node]
        if entry.status not in STANDS:
            groups.setdefault((entry.status, entry.cause or entry.run_id), []).append(node)
    return list(groups.values())


def _failure(
    book: Book, nodes: Sequence[Node], verdicts: Sequence[Verdict], command: str, interval: Interval
) -> str:
    entry = book[nodes[0]]
    hours = sorted({node.hour for node in nodes})
    blocks = ", ".join(sorted({node.block for node in nodes}))
    cause = escaped(entry.cause or entry.run_id)
    lines = [f"{entry.status}: {nodes[0].stage} {blocks}, {_stretches(hours)}: {cause}"]
    if entry.status == "blocked":
        lines.append("  when nothing is in its way any more:")
    if entry.status == "quarantined":
        wrong = [v for v in verdicts if v.node.hour in hours and v.severity == "error" and not v.success]
        lines += ["  " + words(v) for v in wrong]
        built_in = (BUILT_IN.get(v.check) for v in wrong)
        other = next((of.mended for of in built_in if of is not None and of.mended), None)
        mend = other or "mend the data (or accept the value)"
        lines.append(f"  what was published before stays; {mend}, then:")
    lines.append("  " + _filled(command, [h for h in hours if h != NO_HOUR] or list(interval.hours())))
    return "\n".join(lines)


def words(verdict: Verdict) -> str:
    """What a failed check saw, with some of the rows at fault."""
    about = f" in {escaped(verdict.subject)}" if verdict.subject else ""
    several = "s" if verdict.column and "," in verdict.column else ""
    column = f", column{several} {verdict.column}" if verdict.column else ""
    sample = "".join(f"\n    {escaped(row[:200])}" for row in verdict.sample[:5])
    return (
        f"{_stretches([verdict.node.hour])} {verdict.node.block}: {verdict.check}{column}{about}: "
        f"observed {written(verdict.observed)}, expected {verdict.expected}{sample}"
    )


def _lacks(entry: Entry) -> bool:
    return entry.status == "published" and not entry.complete


def _incomplete(book: Book, nodes: Sequence[Node]) -> dict[str, list[datetime]]:
    causes: dict[str, set[datetime]] = {}
    for node in nodes:
        entry = book[node]
        if _lacks(entry):
            causes.setdefault(entry.cause or "something is missing", set()).add(node.hour)
    return {cause: sorted(hours) for cause, hours in causes.items()}


def _stale(ledger: Ledger, stage: str, command: str) -> list[str]:
    """What the last run has left out of date, the first stretches with what mends them."""
    stretches = [
        (finding.start, finding.end)
        for finding in findings(ledger.root, kinds=["stale"])
        if finding.stage == stage and finding.start and finding.end
    ]
    told = [
        f"stale since {format_hour(start)}: {_filled(command, [start, end - HOUR])}"
        for start, end in stretches[:SHOWN]
    ]
    more = len(stretches) - SHOWN
    return told + ([f"stale in {more} more stretches; `transom status` tells all"] if more > 0 else [])


def _stretches(hours: Sequence[datetime]) -> str:
    words = ["files without an hour"] if NO_HOUR in hours else []
    for s in ranges(hour for hour in hours if hour != NO_HOUR):
        words.append(
            format_hour(s.start) if len(s) == 1 else f"{format_hour(s.start)} to {format_hour(s.end)}"
        )
    return ", ".join(words)


def _filled(command: str, hours: Sequence[datetime]) -> str:
    return command.replace("{from}", format_hour(min(hours))).replace("{to}", format_hour(max(hours) + HOUR))
