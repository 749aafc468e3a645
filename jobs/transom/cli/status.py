"""`transom status`: what stands of each stream and stage, from the ledger alone."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transom.cli.arguments import cli_errors, stream_of
from transom.cli.lake_argument import lake, ledger_of, reading, streams_in
from transom.spec.stream import Stream
from transom.stream_files import folder, streams

if TYPE_CHECKING:
    from transom.core.partitions import PartitionKey
    from transom.ledger.snapshot import LedgerSnapshot

COLUMNS = (
    "stream", "stage", "requested", "published", "incomplete", "quarantined", "blocked", "writing", "damaged",
    "stale", "last run", "seconds", "trigger",
)  # fmt: skip
TROUBLES = COLUMNS[4:9]
WORST = ("damaged", "writing", "quarantined", "blocked", "incomplete", "published", "expired")
"""What is said of an hour of which several nodes say different things: the first of these."""
SHOWN, EACH = 20, 3
"""Findings that are shown, in all and of each kind and block."""
ACCEPTED = 5
"""Accepted checks that are shown, the latest."""
CAUSES = 3
"""Reasons upstream of a stage that are said one by one."""


def status(
    stream: Annotated[
        str | None, typer.Argument(metavar="[STREAM]", help="A stream file, or a name; all streams else.")
    ] = None,
    lake_named: Annotated[
        str | None,
        typer.Option("--lake", metavar="URI", help="The lake; TRANSOM_LAKE else, or the checkout's."),
    ] = None,
) -> None:
    """Show what the ledger says: hours by what became of them, the last runs, what was found.

    Hours count as stale where the stream's file, the code or the rows that they are computed from have
    changed since. Files that have come or changed since the last run are not looked for; `explain` does.

    \b
    Example:
      transom status
      transom status site --lake /data/lake

    Exit code 1 where something is not fresh or was never run, 2 where a stream or the lake cannot be read.
    """
    from transom.storage.tables import LakeError, TableMismatch

    with cli_errors(LakeError, TableMismatch):
        named, wrong = _named(stream)
        uri = lake(lake_named)
        fine = []
        for of in named:
            with reading(f"{uri}/{of.name}"):
                fine.append(_print_stream(of, uri))
        if stream is None:
            _say_others(uri, {of.name for of in named})
    for error in wrong:
        typer.echo(error, err=True)
    if wrong or not all(fine):
        raise typer.Exit(2 if wrong else 1)


def _named(stream: str | None) -> tuple[list[Stream], list[Exception]]:
    if stream is not None:
        return [stream_of(stream)[1]], []
    sound, wrong = streams()
    return list(sound.values()), list(wrong)


def _say_others(uri: str, known: set[str]) -> None:
    """Prints which streams of the lake have no file that can be used."""
    others = [name for name in streams_in(uri) if name not in known]
    if others:
        typer.echo(
            f"\nalso in {uri}, without a stream file that can be used in {folder()}: {', '.join(others)}"
        )


def _print_stream(stream: Stream, uri: str) -> bool:
    """Prints a stream, and returns whether all of it is fresh."""
    from transom.app.freshness import freshness_of, snapshot_of
    from transom.cli.file_remarks import known_files, remarks
    from transom.core.terminal_tables import plain, table
    from transom.engine.external import NeverRun
    from transom.findings.store import select_findings
    from transom.ledger.waivers import format_waived

    root = f"{uri}/{stream.name}"
    ledger = ledger_of(root)
    if ledger is None:
        typer.echo(f"\n{stream.name}: no run yet in {uri}")
        return False
    runs, waits = ledger.runs(), ""
    try:
        book = snapshot_of(stream, ledger)
    except NeverRun as error:
        book, waits = ledger.snapshot(), str(error)
    freshness = freshness_of(stream, book)
    rows, because = [], []
    for stage in stream.stages:
        last = next((run for run in reversed(runs) if run["stage"] == stage), None)
        stale = freshness.stale(stage)
        rows.append((stream.name, stage, *_counts(book, stage), len(stale), *_about(last)))
        because += _upstream(stage, stale, book)
    table(f"{stream.name} in {uri}", COLUMNS, rows)
    damaged = _damaged(book)
    for line in [*because, *damaged]:
        typer.echo(f"  {plain(line)}")
    if waits:
        typer.echo(f"  {plain(waits)}")
    for line in remarks(stream, known_files(root), book):
        typer.echo(f"  {plain(line)}")
    passed = [verdict for stage in stream.stages for verdict in ledger.accepted(book, stage)]
    for verdict in passed[-ACCEPTED:]:
        typer.echo(f"  {format_waived(verdict)}")
    if len(passed) > ACCEPTED:
        typer.echo(f"  ... and {len(passed) - ACCEPTED} earlier ones in the table checks")
    found = select_findings(root, SHOWN, EACH, stream.finding_order)
    if found.findings:
        last_run = f" ({runs[-1]['finished_at']:%Y-%m-%dT%H:%M})" if runs else ""
        typer.echo(f"  found as of the last run{last_run}; of files that have come since `explain` tells:")
    for finding in found.findings:
        typer.echo(f"  {plain(finding)}")
    if found.rest:
        typer.echo(f"  {plain(found.rest)}")
    # Neither trouble nor a stale hour. Damage may lie in hours that nobody has asked for, too.
    return not waits and not damaged and not any(any(row[4:10]) for row in rows)


def _upstream(stage: str, stale: "Mapping[datetime, PartitionKey]", book: "LedgerSnapshot") -> list[str]:
    """For what other stages hours of a stage are stale, which are what they are computed from says."""
    from transom.core.intervals import format_hours
    from transom.engine.gate_text import format_roots

    others = {hour: root for hour, root in stale.items() if root.stage != stage}
    causes = [
        f"stale: {stage} of {format_hours(hours)}, as {cause}"
        for cause, hours in format_roots(others, book).items()
    ]
    more = [f"stale: {stage}, for {len(causes) - CAUSES} further reasons"] if len(causes) > CAUSES else []
    return causes[:CAUSES] + more


def _damaged(book: "LedgerSnapshot") -> list[str]:
    """Which hours are marked as damaged, by stage and table; they count as stale."""
    from transom.core.intervals import format_hours
    from transom.core.partitions import SOURCE_STAGE

    hours: dict[tuple[str, str], set[datetime]] = {}
    for node, entry in sorted(book.items()):
        if entry.damaged:
            hours.setdefault((node.stage, node.table), set()).add(node.hour)
    return [
        f"damaged: {stage}, {name}, {format_hours(of_table)}: a run over these hours"
        f"{', and over all that their files touch,' if stage == SOURCE_STAGE else ''} makes them again"
        for (stage, name), of_table in hours.items()
    ]


def _counts(book: "LedgerSnapshot", stage: str) -> list[int]:
    """How many hours of a stage were asked for, and what became of them, as `COLUMNS` names it."""
    hours = book.required_hours
    says: dict[object, str] = {}
    for node, entry in book.items():
        if node.stage == stage and node.hour in hours:
            word = entry.status if entry.complete or entry.status != "published" else "incomplete"
            says[node.hour] = min(word, says.get(node.hour, word), key=WORST.index)
    counts = Counter(says.values())
    troubles = [counts[word] for word in TROUBLES]
    return [len(hours), counts["published"] + counts["expired"], *troubles]


def _about(run: Mapping[str, Any] | None) -> tuple[object, ...]:
    """When a run ended, how long it took, and why it ran."""
    return (None,) * 3 if run is None else (run["finished_at"], run["phase_seconds"]["total"], run["trigger"])
