"""Render a drafted stream file: declarations, with comments for the user who continues with it."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from transom.cli.init.infer_columns import InferredColumn
from transom.cli.init.infer_names import NamedTimes
from transom.cli.init.infer_time import InferredTime
from transom.cli.init.log_format import LogFormat
from transom.cli.init.suggest_blocks import tolerance_of
from transom.cli.init.try_draft import DraftTrial
from transom.cli.log_sample import MAX_BYTES, LogSample
from transom.core.intervals import HOUR, format_hour, hour_of
from transom.core.path_pattern import PathPattern
from transom.core.terminal import counted
from transom.spec.presets import read

MORE = """\
    # fit: {}  # a line through each window, for an alert on slow growth: see docs/concepts/windows.md
    # alert: "n > 100 and slope_n > 0"
# persistence:  # items that come again and again, however rarely: see docs/concepts/persistent-items.md
#   NAME: {item: [COLUMN], slot: 1 hour, window: 1 day, alpha: 0.7, epsilon: 0.3}
# patterns:  # episodes of several steps, minutes or days apart: see docs/concepts/widening.md
#   NAME:
#     within: 1 day
#     steps:
#       - {id: first, where: CONDITION, times: 5, within: 1 hour}
#       - {id: then, where: CONDITION, gap: {max: 30 minutes}}
# frames:  # periods in which a value is high, rises or stays as it is: see docs/concepts/frames.md
#   NAME: {source: activity, kind: threshold, where: n > 100, min_length: 10 minutes}
# fills:  # what was there then, or at the same time of earlier days
#   OTHER: {frame: NAME, source: activity, shift: [1 day], measures: {n: sum(n)}}"""
"""Comment that suggests further blocks."""
LANDING = """\
# The path has no time, which is enough for `transom try`. A DAG needs a file for each hour, with
# the hour in its name, such as landing/{}/%Y-%m-%d/access.%H.log. A file that is rotated has
# another text under the same name, which is a conflict."""
"""Comment on a path without a time."""
NO_TIME = """\
# time: {}
#   `transom check` refuses this file until `time` is decided: the field with the time of an event, such as
#     time: {{column: FIELD, format: "%Y-%m-%d %H:%M:%S", zone: UTC}}
#   or, where invented times will do, each line so much later than the one before it:
#     time: {}"""
"""Comment with the choices if the time is unknown: a draft invents none."""
_PLAIN = re.compile(r"[A-Za-z_/][\w ./()<>=-]*(?<! )", re.ASCII)
_OTHERWISE = {"true", "false", "null", "~"}


def text_of(
    data: Mapping[str, Any],
    log: LogFormat,
    columns: Sequence[InferredColumn],
    undeclared: Sequence[str],
    when: InferredTime | None,
    samples: Sequence[LogSample],
    trial: DraftTrial,
    repeated: tuple[str, int] | None,
    names: NamedTimes | None,
) -> str:
    """Return the text of a stream file.

    Args:
        data: the content.
        undeclared: the fields that are no columns.
        when: the time; None if a preset has it.
        repeated: a column that identifies events, and the number of events that repeat an identifier.
        names: the meaning of the times in the files' names; None if they have none.
    """
    lines = [*_heading(samples, trial, when), f"name: {scalar(data['name'])}"]
    if PathPattern(data["source"]["path"]).unit is None and not (when and when.path):
        lines.append(LANDING.format(data["name"]))
    lines += [f"preset: {log.preset}"] if log.preset is not None else []
    lines += ["source:", *lined(_source(data["source"], log, names), 2)]
    lines += _columns(columns, undeclared, log)
    if when is not None and when.untimed:
        lines.append(NO_TIME.format(comment(when.note), flow(data["time"])))
    elif when is not None:
        lines += lined([(f"time: {flow(data['time'])}", when.note)])
    if repeated is not None:
        # Only the user knows whether events with the same identifier are duplicates.
        name, number = repeated
        words = f"{number} of {counted(trial.events.num_rows, 'event')} repeat the {name} of another one"
        lines.append(f"# unique: [{name}]  # ?: {words}; with this, one of an hour stays")
    return "\n".join([*lines, *_blocks(data, trial), ""])


def _heading(samples: Sequence[LogSample], trial: DraftTrial, when: InferredTime | None) -> list[str]:
    first, last = map(hour_of, trial.extent)
    names = ", ".join(sample.path.name for sample in samples[:3]) + (", ..." if len(samples) > 3 else "")
    cut = "" if all(sample.whole for sample in samples) else f" (the first {MAX_BYTES // 2**20} MiB of each)"
    hours = counted((last - first) // HOUR + 1, "hour")
    extent = f"{format_hour(first)} to {format_hour(last + HOUR)} UTC ({hours})"
    extent = "of times that are not known yet" if when is not None and when.untimed else extent
    return [
        f"# Drafted from {comment(names)}{cut}: {counted(trial.lines, 'line')}, "
        f"{counted(trial.events.num_rows, 'event')},",
        f"# {extent}. A question mark is a guess to look at.",
    ]


def _source(source: Mapping[str, Any], log: LogFormat, names: NamedTimes | None) -> list[tuple[str, str]]:
    """Return the declarations of the source, each with its comment."""
    rows = [(f"path: {scalar(source['path'])}", names.note if names is not None else "")]
    for key, value, note, sure in names.declared if names is not None else ():
        rows.append((f"{'' if sure else '# '}{key}: {value}", note))
    if "format" in source:
        rows.append((f"format: {source['format']}", "; ".join(log.notes)))
    if "options" in source:
        rows.append((f"options: {flow(source['options'])}", ""))
    return rows


def _columns(columns: Sequence[InferredColumn], undeclared: Sequence[str], log: LogFormat) -> list[str]:
    if log.preset is None:
        declared = [(f"{column.name}: {flow(column.declared())}", column.words) for column in columns]
        lines = ["columns:", *lined(declared, 2)] if declared else []
    else:
        lines = ["# Of its columns, some values:"]
        lines += [f"#   {comment(f'{column.path}: {column.words}')}" for column in columns]
        others = read(log.preset)["columns"].keys() - {column.path for column in columns}
        lines += [f"# and, derived from the same: {', '.join(sorted(others))}"] if others else []
    return [*lines, f"# Omitted: {comment(', '.join(undeclared)[:500])}"] if undeclared else lines


def _blocks(data: Mapping[str, Any], trial: DraftTrial) -> list[str]:
    lines = []
    if "key" in data:
        (key,) = data["key"]
        values = counted(pc.count_distinct(trial.events[key]).as_py(), "value")
        lines += lined([(f"key: {flow(data['key'])}", f"{values} in these lines")])
    block = data["aggregates"]["activity"]
    lines += ["aggregates:", "  activity:", f"    measures: {flow(block['measures'])}"]
    lines += [f"    levels: {block['levels']}", MORE]
    reasons = "; ".join(dict.fromkeys(refused.reason for refused in trial.refused))
    at_most = tolerance_of(trial)
    if "checks" in data:
        lines += lined([(f"checks: {flow(data['checks'])}", f"rejected here: {reasons[:200]}")])
    elif at_most is not None:
        share = f"{trial.rejected} of {counted(trial.lines, 'line')}"
        lines += [
            f"# ?: {share} are rejected here: {comment(reasons)[:200]}.",
            "# Such a file is quarantined until its lines are read, or until you allow so many:",
            f"#   checks: {{rejected_share: {{at_most: {at_most}}}}}",
        ]
    return lines


def scalar(value: object) -> str:
    """Return a value as YAML, quoted if it would be read differently without quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _OTHERWISE:
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


def flow(value: object) -> str:
    """Return a value on one line: `{from: bytes, missing: ["-"]}`."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(name)}: {flow(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def comment(text: str) -> str:
    """Return a text for a comment: one line of printable characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def lined(rows: Sequence[tuple[str, str]], indent: int = 0, widest: int = 76) -> list[str]:
    """Return lines with comments, aligned except for lines longer than `widest`."""
    column = max((len(text) for text, _ in rows if len(text) <= widest), default=0)
    return [" " * indent + (f"{text:<{column}}  # {comment(note)}" if note else text) for text, note in rows]
