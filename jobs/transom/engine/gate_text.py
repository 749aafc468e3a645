"""Texts of a gate, in lines of limited width: hours, checks, reasons and remedies."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from transom.core.intervals import HOUR, UNKNOWN_HOUR, format_hour, format_hours
from transom.core.partitions import CheckResult, PartitionKey
from transom.core.reasons import Reason
from transom.core.terminal import counted, escape_control_chars
from transom.ledger.check import format_short
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.waivers import (
    Waiver,
    accept,
    entry_for,
    format_acceptance,
    format_observation,
    near_misses,
)
from transom.spec.checks import BuiltIn

MAX_ITEMS_SHOWN = 5
"""The maximum number of hours, intervals or checks that are listed."""
MAX_NAMES = 3
"""The maximum number of files that a warning lists."""
OF_FILES = ("file", "quarantined_file")
"""The kinds of reasons that are about a file."""
WIDTH = 110
Hours = list[datetime]
Results = Sequence[CheckResult]
Cause = tuple[str, str, str, str]
"""Why hours are stale: the stage, block and table of the outdated hour upstream, and its state."""


def wrapped(text: str, indent: str = "", behind: str = "    ", whole: Iterable[str] = ()) -> list[str]:
    """Return a text in lines of `WIDTH` characters; longer words are not broken.

    Args:
        text: the text.
        indent: the indent of all lines.
        behind: the additional indent of all lines but the first.
        whole: parts of the text that are not broken, so that a search in a log finds them.
    """
    for part in whole:
        text = text.replace(part, part.replace(" ", "\0"))
    lines = textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent + behind,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\0", " ") for line in lines]


def fill_hours(command: str, hours: Sequence[datetime]) -> str:
    """Return a command with `{from}` and `{to}` replaced by the ends of some hours."""
    return command.replace("{from}", format_hour(min(hours))).replace("{to}", format_hour(max(hours) + HOUR))


def format_check_result(result: CheckResult) -> str:
    """Return the value of a failed check, with some of the failing rows."""
    file = f" in {escape_control_chars(result.file)}" if result.file else ""
    check = f"{format_hours([result.partition.hour])} {result.partition.block}: {_check(result)}{file}"
    return f"{check}: {format_observation(result)}{_rows(result, 5)}"


def _check(result: CheckResult) -> str:
    several = "s" if result.column and "," in result.column else ""
    return result.check + (f", column{several} {result.column}" if result.column else "")


def _rows(result: CheckResult, count: int) -> str:
    return "".join(f"\n    {escape_control_chars(row[:200])}" for row in result.failing_rows[:count])


def remarks(results: Results) -> list[str]:
    """Return one warning for each block, check and column. Several files or hours are counted, and some
    named."""
    groups: dict[tuple[str, str], list[CheckResult]] = {}
    for result in results:
        groups.setdefault((result.partition.block, _check(result)), []).append(result)
    return [format_check_result(group[0]) if len(group) == 1 else _remark(group) for group in groups.values()]


def _remark(results: Results) -> str:
    """Return one line for a check that failed several times, with the first failing rows."""
    first = results[0]
    times = {result.partition.hour for result in results}
    hours = sorted(times - {UNKNOWN_HOUR})
    names = list(dict.fromkeys(result.file for result in results if result.file))
    count = counted(len(names), "file") if names else counted(len(times), "hour")
    values = sorted(result.observed for result in results if result.observed is not None)
    ends = dict.fromkeys(values[:1] + values[-1:])
    observed = " to ".join(map(format_short, ends)) or "nothing"
    rows = "".join([_rows(result, 1) for result in results if result.failing_rows][:MAX_NAMES])
    when = format_hour(hours[0]) if hours else "files without an hour"
    when += f" to {format_hour(hours[-1] + HOUR)}" if len(hours) > 1 else ""
    return (
        f"{when} {first.partition.block}: {_check(first)}: {count}: observed {observed}, "
        f"expected {first.expected}{format_names(names)}{rows}"
    )


def format_names(names: Sequence[str]) -> str:
    """Return some names and the number of others: `: a, b, c and 7 more`; empty for none."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f": {', '.join(map(escape_control_chars, names[:MAX_NAMES]))}{more}" if names else ""


def incomplete_remarks(snapshot: LedgerSnapshot, partitions: Sequence[PartitionKey]) -> list[str]:
    """Return one line for each reason why partitions are incomplete, with the files, tables and hours."""
    # By the reason without its file and hours: the files, and the partitions.
    groups: dict[str, tuple[dict[str, None], dict[PartitionKey, None]]] = {}
    for partition in partitions:
        state = snapshot[partition]
        for reason in state.reasons or (Reason("check", state.reason or "something is missing"),):
            text = reason.text
            if reason.kind in ("inputs", "earlier"):
                text = "hours that it is computed from are incomplete"
            elif reason.kind in OF_FILES:
                text = text.removeprefix(f"{reason.about}: ")
            files, incomplete = groups.setdefault(text, ({}, {}))
            if reason.about is not None and reason.kind in OF_FILES:
                files[reason.about] = None
            incomplete[partition] = None
    lines: list[str] = []
    for text, (files, incomplete) in groups.items():
        tables: dict[tuple[str, str], set[str]] = {}
        for partition in incomplete:
            tables.setdefault((partition.stage, partition.block), set()).add(partition.table)
        # `aggregates traffic (aggregates, granules)`
        where = "; ".join(
            f"{stage} {block}" + (f" ({', '.join(sorted(names))})" if names != {block} else "")
            for (stage, block), names in tables.items()
        )
        what = escape_control_chars(text)
        if len(files) == 1:
            what = f"{escape_control_chars(next(iter(files)))}: {what}"
        elif files:
            what += f": {counted(len(files), 'file')}{format_names(list(files))}"
        hours = format_hours(sorted({partition.hour for partition in incomplete}))
        lines.append(f"incomplete: {where}, {hours}: {what}")
    return lines


def format_blocked(
    snapshot: LedgerSnapshot,
    partitions: Sequence[PartitionKey],
    results: Results,
    command: str,
    hours: Sequence[datetime],
    waivers: Sequence[Waiver],
    rules: Mapping[str, BuiltIn],
) -> str:
    """Return a paragraph on partitions that are not published for one reason: the remedy, then the checks.

    Args:
        snapshot: the ledger.
        partitions: the partitions, one or more.
        results: the check results of the stage.
        command: the command that runs the stage again, with `{from}` and `{to}`.
        hours: the hours to run if the partitions have no hour.
        waivers: the waivers of the stream file.
        rules: the built-in checks, by name.
    """
    state = snapshot[partitions[0]]
    own = sorted({key.hour for key in partitions})
    blocks = ", ".join(sorted({key.block for key in partitions}))
    texts = {snapshot[key].reason or snapshot[key].run_id for key in partitions}
    names = ((reason.about if reason.kind == "check" else None) or reason.text for reason in state.reasons)
    about = ", ".join(dict.fromkeys(names))
    # If the texts differ, the lines below have the values.
    reason = escape_control_chars(about if about and len(texts) > 1 else state.reason or state.run_id)
    keys = {(key.block, key.hour) for key in partitions}
    failed = [result for result in results if (result.partition.block, result.partition.hour) in keys]
    failed = [result for result in failed if result.severity == "error" and not result.success]
    title = f"{state.status}: {partitions[0].stage} {blocks}, {format_hours(own)}: {reason}"
    lines = wrapped(title, whole={format_observation(result) for result in failed})
    run = f"  {fill_hours(command, [hour for hour in own if hour != UNKNOWN_HOUR] or hours)}"
    if state.status == "blocked":
        lines += ["  when nothing blocks it any more:", run]
    elif state.status == "quarantined":
        remedy = next(
            (rule.remedy for result in failed if (rule := rules.get(result.check)) and rule.remedy), None
        )
        what = f"{remedy or 'fix the data (or accept the value)'}, then"
        if acceptance := format_acceptance(failed, waivers):
            what = f"{acceptance}; run"
        lines += [*wrapped(f"what was published before stays; {what}:", "  "), run]
        lines += [] if remedy else _waiver_lines(failed, waivers, results)
        for result in failed[:MAX_ITEMS_SHOWN]:
            first, *rows = format_check_result(result).split("\n")
            lines += [*wrapped(first, "  ", whole=[format_observation(result)]), *rows]
        if len(failed) > MAX_ITEMS_SHOWN:
            lines.append(f"  and {len(failed) - MAX_ITEMS_SHOWN} more; `transom explain` lists them")
    else:
        lines.append(run)
    return "\n".join(lines)


def _waiver_lines(failed: Results, waivers: Sequence[Waiver], results: Results) -> list[str]:
    """Return how to waive the failed checks without a waiver, and which waivers have another value."""
    failed = [result for result in failed if not accept(result, waivers).success]
    misses = list(dict.fromkeys(miss for result in failed for miss in near_misses(result, waivers, results)))
    lines = [line for miss in misses[:MAX_ITEMS_SHOWN] for line in wrapped(miss, "  ")]
    items = list(dict.fromkeys(filter(None, map(entry_for, failed))))
    if items:
        lines.append("  to accept it, put this into the stream file, with your name and the reason:")
        lines += ["    waivers:", *(f"      {item}" for item in items[:MAX_ITEMS_SHOWN])]
    if len(items) > MAX_ITEMS_SHOWN:
        lines.append(f"      # and {len(items) - MAX_ITEMS_SHOWN} more, one for each failed check")
    return lines


def format_root(root: PartitionKey, snapshot: LedgerSnapshot) -> str:
    """Return as text why the readers of a root are stale."""
    (words,) = format_roots({root.hour: root}, snapshot)
    return words


def cause_of(root: PartitionKey, snapshot: LedgerSnapshot) -> Cause:
    """Return the table of a root, and the state of the root."""
    state = snapshot.get(root)
    what: str = "not computed" if state is None else state.status
    return *root.series, "out of date" if what in ("published", "expired") else what


def format_cause(cause: Cause, hours: Iterable[datetime]) -> str:
    """Return as text why the readers of some hours of a table are stale."""
    stage, block, table, what = cause
    return f"{stage} {block} ({table}) of {format_hours(hours)} is {what}"


def format_roots(roots: Mapping[datetime, PartitionKey], snapshot: LedgerSnapshot) -> dict[str, Hours]:
    """Return the stale hours by reason, which is an upstream table and its state.

    Args:
        roots: the stale hours, each with its root.
        snapshot: the ledger.
    """
    groups: dict[Cause, list[tuple[datetime, datetime]]] = {}
    for hour, root in roots.items():
        groups.setdefault(cause_of(root, snapshot), []).append((hour, root.hour))
    return {
        format_cause(cause, {root_hour for _, root_hour in hours}): [hour for hour, _ in hours]
        for cause, hours in groups.items()
    }
