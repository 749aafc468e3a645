"""What a try has found, printed: findings, first rows, refused lines, what an hour costs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import typer
from deltalake import DeltaTable

from transom.cli.adhoc_files import EXAMPLES, ScannedFile
from transom.core.intervals import Interval
from transom.core.terminal import counted
from transom.core.terminal_tables import plain, table
from transom.engine.gate import GateResult
from transom.features.ingest.equal_files import equal_files, names_of
from transom.features.ingest.file_records import FileRecord
from transom.findings.store import select_findings
from transom.ledger.ledger import Ledger
from transom.spec.stream import Stream
from transom.storage.tables import read_rows

MOST, EACH = 50, 5
"""Findings that are shown, in all and of each kind and block."""


def print_files(files: Sequence[ScannedFile]) -> None:
    """Prints how many lines of each file are events."""
    rows = [
        (
            str(file.path), file.lines, file.header_lines, file.events, sum(file.reasons.values()),
            min(file.hours, default=None), max(file.hours, default=None), file.error or "",
        )
        for file in files
    ]  # fmt: skip
    columns = ("file", "lines", "headers", "events", "refused", "first hour", "last hour")
    if not any(row[-1] for row in rows):
        table("files", columns, [row[:-1] for row in rows])
    else:
        table("files", (*columns, "broken"), rows)


def print_rejected(files: Sequence[ScannedFile]) -> None:
    """Prints the lines that are no events: how many of how many files for each reason, and the first ones."""
    total = sum((file.reasons for file in files), Counter[str]())
    rows = []
    for reason, times in total.most_common():
        of_reason = [file for file in files if file.reasons[reason]]
        # Of many files one line each shows more than all lines of the first.
        examples = sorted(
            (index, number, file.path.name, *example)
            for number, file in enumerate(of_reason)
            for index, example in enumerate(file.examples[reason])
        )[:EXAMPLES]
        for index, (_, _, name, line, raw, detail) in enumerate(examples):
            about = (reason, times, len(of_reason)) if index == 0 else ("", "", "")
            rows.append((*about, name, line, _shorten_detail(detail), raw[:60]))
    if rows:
        columns = ("reason", "lines", "files", "file", "line", "seen", "text")
        table(f"lines that are no event, the first {EXAMPLES} of each reason", columns, rows)


def _shorten_detail(detail: str) -> str:
    """What was seen and what was expected; where it is long, of both as much as tells them."""
    seen, expects, expected = detail.partition("; expected ")
    return f"{_cut(seen, 50)}{expects}{_cut(expected, 100)}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def print_equal_files(stream: Stream, root: str, paths: Mapping[str, ScannedFile]) -> None:
    """Print which files hold the same bytes as another one, and whether both count.

    Args:
        stream: as it was tried.
        root: its folder in the lake.
        paths: the files by the paths under which they have landed.
    """
    uri = f"{root}/files"
    if not DeltaTable.is_deltatable(uri):
        return
    files = {row["path"]: row for row in read_rows(DeltaTable(uri))}
    equal = equal_files(map(FileRecord.of_row, files.values()), names_of(stream))
    first = {row["source_id"]: path for path, row in files.items() if row["status"] != "duplicate"}
    rows = []
    for path, row in sorted(files.items()):
        if path in equal:
            rows.append((path, equal[path].other, "both count" if equal[path].counted else "counts once"))
        elif row["status"] == "duplicate" and row["accepted"] + row["duplicates"]:
            rows.append((path, first[row["source_id"]], "one file, packed or rotated"))
    if rows:
        shown = [(str(paths[path].path), str(paths[other].path), words) for path, other, words in rows]
        table("files of the same bytes", ("file", "the same as", "so"), shown)


def print_duplicates(stream: Stream, root: str, paths: Mapping[str, ScannedFile]) -> None:
    """Prints how many events of each file repeat another one, where the stream says what makes them one.

    Args:
        paths: as of `print_equal_files`.
    """
    uri = f"{root}/files"
    if stream.unique is None or not DeltaTable.is_deltatable(uri):
        return
    found = {row["path"]: row for row in read_rows(DeltaTable(uri))}
    rows = [
        (str(file.path), file.events, row["duplicates"], row["accepted"])
        for path, file in paths.items()
        if (row := found.get(path)) is not None and row["duplicates"]
    ]
    if rows:
        columns = ", ".join(stream.unique.columns)
        title = f"events that repeat another one of their hour in {columns}: they go to the table duplicates"
        table(title, ("file", "events", "duplicates", "rows"), rows)


def print_results(
    stream: Stream,
    root: str,
    interval: Interval,
    judged: Sequence[GateResult],
    named: Callable[[str], str] = str,
) -> None:
    """Prints what the gates say, and the first rows of each result; of a stage that did not run it says so.

    Args:
        named: names files in a text as a person knows them.
    """
    typer.echo(f"\nfindings in {interval}")
    found = select_findings(root, MOST, EACH, stream.finding_order, interval)
    for finding in found.findings:
        typer.echo(f"  {plain(named(str(finding)))}")
        for words in finding.evidence:
            typer.echo(f"    {plain(named(words))[:200]}")
    if found.rest:
        typer.echo(f"  {plain(found.rest)}")
    passed = all(judgement.passed for judgement in judged)
    if not found.findings:
        typer.echo(f"  none: every check {'passed' if passed else 'that was made passed'}")
    ran = {run["stage"] for run in Ledger(root).runs()}
    for feature in stream.features:
        if feature.name in ran and feature.render is not None:
            feature.render(stream, root)
    for feature in stream.features:
        for name in stream.blocks(feature.block) if feature.name not in ran else ():
            typer.echo(f"\n{name}: not run, as stage {feature.name} did not")


def print_cost(root: str, interval: Interval) -> None:
    """Prints what the stages took together, and between what one hour alone would cost.

    A run of one hour starts Spark as well, and makes every commit of a longer run: it costs more than its
    share of the rows, and hardly more than all hours together.
    """
    rows = []
    start = took = 0.0
    for run in Ledger(root).runs():
        seconds = run["phase_seconds"]
        start += seconds["session"]
        took += seconds["total"] - seconds["session"]
        rows.append(
            (run["stage"], run["rows_read"] or None, run["rows_out"], seconds["total"] - seconds["session"])
        )
    hours = len(interval)
    alone = "on its own" if hours == 1 else "together"
    columns = ("stage", "lines read", "rows out", "seconds")
    table(f"cost of {counted(hours, 'hour')}, run {alone}", columns, rows)
    least, most = start + took / hours, start + took
    if hours == 1:
        typer.echo(f"\nOne hour on its own: {most:.1f} s, of which {start:.1f} s are the start of Spark.")
        return
    typer.echo(
        f"\nOne hour on its own: {least:.1f} to {most:.1f} s, of which {start:.1f} s are the start of Spark "
        f"and {took / hours:.2f} s its share of the rest.\nThe fewer lines an hour has, the nearer it is to "
        "the upper end: every run makes the same commits and checks."
    )
