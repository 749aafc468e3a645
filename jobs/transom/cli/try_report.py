"""The report of `transom try`: findings, sample rows, rejected lines, cost of an hour."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

import typer

from transom.cli.adhoc_files import EXAMPLES, ScannedFile
from transom.core.intervals import Interval
from transom.core.terminal import counted
from transom.core.terminal_tables import collect, plain, table
from transom.engine.gate import GateResult
from transom.features.ingest.equal_files import equal_files, names_of
from transom.features.registry import FINDING_ORDER
from transom.findings.store import select_findings
from transom.ledger.ledger import Ledger
from transom.spec.stream import Stream
from transom.views.file_remarks import known_files

MAX_FINDINGS, MAX_OF_BLOCK = 50, 5
"""Maximum number of findings that are shown: in total, and per kind and block."""


def print_files(files: Sequence[ScannedFile]) -> None:
    """Print the number of lines and events of each file."""
    rows = [
        (
            str(file.path), file.lines, file.header_lines, file.events, sum(file.reasons.values()),
            min(file.hours, default=None), max(file.hours, default=None), file.error or "",
        )
        for file in files
    ]  # fmt: skip
    columns = ("file", "lines", "headers", "events", "rejected", "first hour", "last hour", "broken")
    shown = len(columns) if any(row[-1] for row in rows) else -1
    table("files", columns[:shown], [row[:shown] for row in rows])


def print_rejected(files: Sequence[ScannedFile]) -> None:
    """Print the numbers of rejected lines and of their files for each reason, and the first lines."""
    total = sum((file.reasons for file in files), Counter[str]())
    rows = []
    for reason, times in total.most_common():
        of_reason = [file for file in files if file.reasons[reason]]
        # One line of each of several files shows more than all lines of one.
        examples = sorted(
            (index, number, file.path.name, *example)
            for number, file in enumerate(of_reason)
            for index, example in enumerate(file.examples[reason])
        )[:EXAMPLES]
        for index, (_, _, name, line, raw, detail) in enumerate(examples):
            about = (reason, times, len(of_reason)) if index == 0 else ("", "", "")
            actual, separator, expected = detail.partition("; expected ")
            seen = f"{_cut(actual, 50)}{separator}{_cut(expected, 100)}"
            rows.append((*about, name, line, seen, _cut(raw, 60)))
    if rows:
        columns = ("reason", "lines", "files", "file", "line", "seen", "text")
        table(f"rejected lines, the first {EXAMPLES} of each reason", columns, rows)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."


def print_equal_files(stream: Stream, root: str, paths: Mapping[str, ScannedFile]) -> None:
    """Print files whose bytes equal those of another file, and whether both count.

    Args:
        stream: as it was tried.
        root: its folder in the lake.
        paths: the files by their paths in the landing folder.
    """
    files = known_files(root)
    equal = equal_files(files, names_of(stream))
    first = {file.source_id: file.path for file in files if file.status != "duplicate"}
    rows = []
    for file in sorted(files, key=attrgetter("path")):
        if same := equal.get(file.path):
            rows.append((file.path, same.other, "both count" if same.counted else "counts once"))
        elif file.status == "duplicate" and file.parsed:
            rows.append((file.path, first[file.source_id], "one file, packed or rotated"))
    if rows:
        shown = [(str(paths[path].path), str(paths[other].path), words) for path, other, words in rows]
        table("files of the same bytes", ("file", "the same as", "so"), shown)


def print_duplicates(stream: Stream, root: str, paths: Mapping[str, ScannedFile]) -> None:
    """Print the number of duplicate events per file if the stream has `unique`.

    Args:
        stream: as it was tried.
        root: its folder in the lake.
        paths: as in `print_equal_files`.
    """
    if stream.unique is None:
        return
    files = {file.path: file for file in known_files(root)}
    rows = [
        (str(file.path), file.events, files[path].duplicates, files[path].accepted)
        for path, file in paths.items()
        if path in files and files[path].duplicates
    ]
    if rows:
        columns = ", ".join(stream.unique.columns)
        title = f"events that repeat another one of their hour in {columns}: they go to the table duplicates"
        table(title, ("file", "events", "duplicates", "rows"), rows)


def print_results(
    stream: Stream,
    root: str,
    interval: Interval,
    gates: Sequence[GateResult],
    rename: Callable[[str], str] = str,
) -> None:
    """Print findings, sample rows of each result, and the blocks that did not run.

    Args:
        gates: the gate results of all stages that ran.
        rename: replaces the landing paths in a text by the paths of the user's files.
    """
    typer.echo(f"\nfindings in {interval}")
    selected, rest = select_findings(root, MAX_FINDINGS, MAX_OF_BLOCK, FINDING_ORDER, interval)
    collect(
        "findings",
        [
            {"severity": finding.severity, "kind": finding.kind, "block": finding.block, "hour": finding.hour,
             "title": rename(finding.title), "evidence": [rename(text) for text in finding.evidence]}
            for finding in selected
        ],
    )  # fmt: skip
    for finding in selected:
        typer.echo(f"  {plain(rename(str(finding)))}")
        for words in finding.evidence:
            typer.echo(f"    {plain(rename(words))[:200]}")
    if rest:
        typer.echo(f"  {plain(rest)}")
    passed = all(gate.passed for gate in gates)
    if not selected:
        typer.echo(f"  none: every check {'passed' if passed else 'that was made passed'}")
    ran = {run["stage"] for run in Ledger(root).runs()}
    for feature in stream.features:
        if feature.name in ran and feature.render is not None:
            feature.render(stream, root)
    for feature in stream.features:
        for name in stream.blocks(feature.block) if feature.name not in ran else ():
            typer.echo(f"\n{name}: not run, as stage {feature.name} did not")


def print_cost(root: str, interval: Interval) -> None:
    """Print the time of each stage, and bounds of the time of one hour.

    A run of one hour starts Spark and makes all commits, like a longer run. So it takes longer than its share
    of the rows, but not much longer than all hours together.
    """
    rows = []
    start = work = 0.0
    for run in Ledger(root).runs():
        session = run["phase_seconds"]["session"]
        seconds = run["phase_seconds"]["total"] - session
        start += session
        work += seconds
        rows.append((run["stage"], run["rows_read"] or None, run["rows_out"], seconds))
    hours = len(interval)
    alone = "on its own" if hours == 1 else "together"
    columns = ("stage", "lines read", "rows out", "seconds")
    table(f"cost of {counted(hours, 'hour')}, run {alone}", columns, rows)
    spark = f"{start + work:.1f} s, of which {start:.1f} s are the start of Spark"
    if hours == 1:
        typer.echo(f"\nOne hour on its own: {spark}.")
        return
    typer.echo(
        f"\nOne hour on its own: {start + work / hours:.1f} to {spark} and {work / hours:.2f} s its share of "
        "the rest.\nThe fewer lines an hour has, the nearer it is to the upper end: every run makes the same "
        "commits and checks."
    )
