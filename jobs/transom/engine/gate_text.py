"""What a gate says, in lines that fit a page: hours, checks, causes and what helps."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from transom.core.intervals import HOUR, UNKNOWN_HOUR, format_hour, format_hours
from transom.core.partitions import CheckResult, PartitionKey
from transom.core.reasons import Reason
from transom.core.terminal import counted, escape_control_chars
from transom.ledger.check import format_short
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.waivers import Waiver, entry_for, format_observation, near_misses
from transom.spec.checks import BuiltIn

MAX_ITEMS_SHOWN = 5
"""How many hours, stretches of hours or checks are named one by one."""
NAMES = 3
"""How many files are named of one kind of remark."""
OF_FILES = ("file", "quarantined_file")
"""Kinds of causes that say something of a file."""
WIDE = 110
"""Columns of a page."""


def wrapped(text: str, indent: str = "", behind: str = "    ", whole: Iterable[str] = ()) -> list[str]:
    """Return a text in lines that fit a page; a long word stays whole.

    Args:
        indent: what comes before the first line.
        behind: what comes before each other line, beside `indent`.
        whole: parts of it that are looked for in a log as one text: no end of a line comes into them.
    """
    for part in whole:
        text = text.replace(part, part.replace(" ", "\0"))
    lines = textwrap.wrap(
        text, WIDE, initial_indent=indent, subsequent_indent=indent + behind,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\0", " ") for line in lines]


def fill_hours(command: str, hours: Sequence[datetime]) -> str:
    """Return a command with `{from}` and `{to}` filled in by hours."""
    return command.replace("{from}", format_hour(min(hours))).replace("{to}", format_hour(max(hours) + HOUR))


def format_check_result(verdict: CheckResult) -> str:
    """Return what a failed check saw, with some of the rows at fault."""
    about = f" in {escape_control_chars(verdict.file)}" if verdict.file else ""
    sample = "".join(f"\n    {escape_control_chars(row[:200])}" for row in verdict.failing_rows[:5])
    return (
        f"{format_hours([verdict.node.hour])} {verdict.node.block}: {_check(verdict)}{about}: "
        f"{format_observation(verdict)}{sample}"
    )


def _check(verdict: CheckResult) -> str:
    several = "s" if verdict.column and "," in verdict.column else ""
    return verdict.check + (f", column{several} {verdict.column}" if verdict.column else "")


def remarks(verdicts: Sequence[CheckResult]) -> list[str]:
    """Return warnings, one for each check, column and block: of several files or hours their number and some
    names."""
    kinds: dict[tuple[str, str], list[CheckResult]] = {}
    for verdict in verdicts:
        kinds.setdefault((verdict.node.block, _check(verdict)), []).append(verdict)
    return [format_check_result(some[0]) if len(some) == 1 else _remark(some) for some in kinds.values()]


def _remark(verdicts: Sequence[CheckResult]) -> str:
    """One line on one check that has failed several times, with the first row at fault of some."""
    first = verdicts[0]
    hours = sorted({verdict.node.hour for verdict in verdicts})
    names = list(dict.fromkeys(v.file for v in verdicts if v.file))
    many = counted(len(names), "file") if names else counted(len(hours), "hour")
    values = [v.observed for v in verdicts if v.observed is not None]
    seen = f"{format_short(min(values))} to {format_short(max(values))}" if values else "nothing"
    seen = format_short(values[0]) if values and min(values) == max(values) else seen
    rows = [f"\n    {escape_control_chars(v.failing_rows[0][:200])}" for v in verdicts if v.failing_rows][
        :NAMES
    ]
    return (
        f"{_in_short(hours)} {first.node.block}: {_check(first)}: {many}: observed {seen}, "
        f"expected {first.expected}{format_names(names)}{''.join(rows)}"
    )


def _in_short(hours: Sequence[datetime]) -> str:
    """The first and the last of some hours."""
    own = [hour for hour in hours if hour != UNKNOWN_HOUR]
    if not own:
        return "files without an hour"
    return format_hour(own[0]) if len(own) == 1 else f"{format_hour(own[0])} to {format_hour(own[-1] + HOUR)}"


def format_names(names: Sequence[str]) -> str:
    """Return some names and how many more there are: `: a, b, c and 7 more`; nothing of none."""
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return f": {', '.join(map(escape_control_chars, names[:NAMES]))}{more}" if names else ""


def incomplete_remarks(book: LedgerSnapshot, nodes: Sequence[PartitionKey]) -> list[str]:
    """Return what is missing in some nodes, one line for each kind of it and the tables that lack it."""
    # By what is said without file and hour: the files, and the hours of each block and table.
    kinds: dict[str, tuple[dict[str, None], dict[PartitionKey, None]]] = {}
    for node in nodes:
        entry = book[node]
        for cause in entry.reasons or (Reason("check", entry.reason or "something is missing"),):
            files, lacking = kinds.setdefault(_kind_of(cause), ({}, {}))
            if cause.about is not None and cause.kind in OF_FILES:
                files[cause.about] = None
            lacking[node] = None
    lines: list[str] = []
    for kind, (files, lacking) in kinds.items():
        tables: dict[tuple[str, str], set[str]] = {}
        for node in lacking:
            tables.setdefault((node.stage, node.block), set()).add(node.table)
        where = "; ".join(_tables(stage, block, of) for (stage, block), of in tables.items())
        hours = format_hours(sorted({node.hour for node in lacking}))
        lines.append(f"incomplete: {where}, {hours}: {_of_files(kind, list(files))}")
    return lines


def _kind_of(cause: Reason) -> str:
    """Return what a cause says without its hours and its file."""
    if cause.kind in ("inputs", "earlier"):
        return "hours that it is computed from are incomplete"
    return cause.text.removeprefix(f"{cause.about}: ") if cause.kind in OF_FILES else cause.text


def _of_files(kind: str, files: Sequence[str]) -> str:
    if len(files) == 1:
        return f"{escape_control_chars(files[0])}: {escape_control_chars(kind)}"
    return escape_control_chars(kind) + (
        f": {counted(len(files), 'file')}{format_names(files)}" if files else ""
    )


def _tables(stage: str, block: str, tables: set[str]) -> str:
    """A block of a stage with its tables: `aggregates traffic (aggregates, granules)`."""
    beside = f" ({', '.join(sorted(tables))})" if tables != {block} else ""
    return f"{stage} {block}{beside}"


def format_blocked(
    book: LedgerSnapshot,
    nodes: Sequence[PartitionKey],
    verdicts: Sequence[CheckResult],
    command: str,
    hours: Sequence[datetime],
    accepted: Sequence[Waiver],
    rules: Mapping[str, BuiltIn],
) -> str:
    """Return a paragraph on nodes that are not published for one cause: what helps, then what was seen.

    Args:
        command: what runs the stage again, with `{from}` and `{to}`.
        hours: what to run where the nodes belong to no hour.
        accepted: what the stream file accepts.
        rules: the checks that transom makes, by name.
    """
    entry = book[nodes[0]]
    own = sorted({node.hour for node in nodes})
    blocks = ", ".join(sorted({node.block for node in nodes}))
    texts = {book[node].reason or book[node].run_id for node in nodes}
    kinds = ((one.about if one.kind == "check" else None) or one.text for one in entry.reasons)
    about = ", ".join(dict.fromkeys(kinds))
    # Where each says it with values of its own, the lines below have them.
    cause = escape_control_chars(about if about and len(texts) > 1 else entry.reason or entry.run_id)
    own_nodes = {(node.block, node.hour) for node in nodes}
    wrong = [
        v
        for v in verdicts
        if (v.node.block, v.node.hour) in own_nodes and v.severity == "error" and not v.success
    ]
    title = f"{entry.status}: {nodes[0].stage} {blocks}, {format_hours(own)}: {cause}"
    lines = wrapped(title, whole={format_observation(verdict) for verdict in wrong})
    run = f"  {fill_hours(command, [hour for hour in own if hour != UNKNOWN_HOUR] or hours)}"
    if entry.status == "blocked":
        lines += ["  when nothing is in its way any more:", run]
    elif entry.status == "quarantined":
        other = next((of.mended for v in wrong if (of := rules.get(v.check)) and of.mended), None)
        mend = other or "mend the data (or accept the value)"
        lines += [f"  what was published before stays; {mend}, then:", run]
        lines += [] if other else _acceptance(wrong, accepted, verdicts)
        for verdict in wrong[:MAX_ITEMS_SHOWN]:
            first, *rows = format_check_result(verdict).split("\n")
            lines += [*wrapped(first, "  ", whole=[format_observation(verdict)]), *rows]
        if len(wrong) > MAX_ITEMS_SHOWN:
            lines.append(f"  and {len(wrong) - MAX_ITEMS_SHOWN} more; `transom explain` says which")
    else:
        lines.append(run)
    return "\n".join(lines)


def _acceptance(
    wrong: Sequence[CheckResult], accepted: Sequence[Waiver], verdicts: Sequence[CheckResult]
) -> list[str]:
    """How to let failed checks pass, and why what the stream file accepts does not."""
    found = (miss for verdict in wrong for miss in near_misses(verdict, accepted, verdicts))
    misses = list(dict.fromkeys(found))
    lines = [line for miss in misses[:MAX_ITEMS_SHOWN] for line in wrapped(miss, "  ")]
    entries = list(dict.fromkeys(filter(None, map(entry_for, wrong))))
    if entries:
        lines.append("  to accept it, put this into the stream file, with your name and the reason:")
        lines += ["    waivers:", *(f"      {entry}" for entry in entries[:MAX_ITEMS_SHOWN])]
        lines += [f"      # and {len(entries) - MAX_ITEMS_SHOWN} more, one for each failed check"][
            : len(entries) > MAX_ITEMS_SHOWN
        ]
    return lines


def format_root(root: PartitionKey, book: LedgerSnapshot) -> str:
    """Return in words why what is computed from a root is stale."""
    (words,) = format_roots({root.hour: root}, book)
    return words


def format_roots(stale: Mapping[datetime, PartitionKey], book: LedgerSnapshot) -> dict[str, list[datetime]]:
    """Return the hours of each reason in words: a block's table upstream, and what is the matter with it.

    Args:
        stale: stale hours, each with its root.
    """
    grouped: dict[tuple[str, str, str, str], list[tuple[datetime, datetime]]] = {}
    for hour, root in stale.items():
        group = root.stage, root.block, root.table, _root_state(root, book)
        grouped.setdefault(group, []).append((hour, root.hour))
    return {
        f"{stage} {block} ({table}) of {format_hours({of for _, of in hours})} is {state}": [
            h for h, _ in hours
        ]
        for (stage, block, table, state), hours in grouped.items()
    }


def _root_state(root: PartitionKey, book: LedgerSnapshot) -> str:
    entry = book.get(root)
    if entry is None:
        return "not computed"
    named = ("writing", "blocked", "quarantined", "damaged")
    return entry.status if entry.status in named else "out of date"
