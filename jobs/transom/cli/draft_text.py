"""The text of a drafted stream file: what it declares, with comments for the person who goes on with it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from transom.cli.guessed_time import When
from transom.cli.guesses import Column
from transom.cli.log import Log
from transom.cli.sample import MOST, Sample
from transom.cli.sample_events import Tried
from transom.cli.yaml_text import comment, flow, lined, scalar
from transom.intervals import HOUR, format_hour, hour_of
from transom.paths import PathPattern


def text_of(
    data: Mapping[str, Any],
    log: Log,
    columns: Sequence[Column],
    left: Sequence[str],
    when: When | None,
    samples: Sequence[Sample],
    found: Tried,
) -> str:
    """A stream file.

    Args:
        data: what it says.
        left: fields that are no columns.
        when: the time, which a preset says itself.
    """
    return "\n".join(
        [
            *_heading(samples, found),
            f"name: {scalar(data['name'])}",
            *_source(data, log),
            *_columns(columns, left, log),
            *([] if when is None else lined([(f"time: {flow(data['time'])}", when.note)])),
            *_blocks(data, found),
            "",
        ]
    )


def _heading(samples: Sequence[Sample], found: Tried) -> list[str]:
    first, last = found.extent
    hours = (hour_of(last) - hour_of(first)) // HOUR + 1
    names = ", ".join(sample.path.name for sample in samples[:3]) + (", ..." if len(samples) > 3 else "")
    cut = "" if all(sample.whole for sample in samples) else f" (the first {MOST // 2**20} MiB of each)"
    stretch = f"{format_hour(hour_of(first))} to {format_hour(hour_of(last) + HOUR)} UTC"
    return [
        f"# Drafted from {comment(names)}{cut}: {found.lines} lines, {found.events.num_rows} events,",
        f"# {stretch} ({hours} hour{'' if hours == 1 else 's'}). A question mark is a guess to look at.",
    ]


def _source(data: Mapping[str, Any], log: Log) -> list[str]:
    source = data["source"]
    timed = PathPattern(source["path"]).unit is not None
    path_note = "times in the names are in UTC; else say their `zone`" if timed else ""
    rows = [(f"path: {scalar(source['path'])}", path_note)]
    rows += [(f"format: {source['format']}", "; ".join(log.notes))] if "format" in source else []
    rows += [(f"options: {flow(source['options'])}", "")] if "options" in source else []
    preset = [f"preset: {log.preset}"] if log.preset is not None else []
    return [*preset, "source:", *lined(rows, 2)]


def _columns(columns: Sequence[Column], left: Sequence[str], log: Log) -> list[str]:
    if log.preset is None:
        declared = [(f"{column.name}: {flow(column.declared())}", column.words) for column in columns]
        lines = ["columns:", *lined(declared, 2)] if declared else []
    else:
        lines = ["# Of its columns, some values:"]
        lines += [f"#   {comment(f'{column.path}: {column.words}')}" for column in columns]
    return [*lines, f"# Left out: {comment(', '.join(left)[:500])}"] if left else lines


def _blocks(data: Mapping[str, Any], found: Tried) -> list[str]:
    lines = []
    if "key" in data:
        (key,) = data["key"]
        values = pc.count_distinct(found.events[key]).as_py()
        lines += lined([(f"key: {flow(data['key'])}", f"{values} values in these lines")])
    block = data["aggregate"]["activity"]
    lines += ["aggregate:", "  activity:", f"    measures: {flow(block['measures'])}"]
    lines.append(f"    levels: {block['levels']}")
    if "checks" in data:
        reasons = "; ".join(dict.fromkeys(refused.reason for refused in found.refused))
        lines += lined([(f"checks: {flow(data['checks'])}", f"refused here: {reasons[:200]}")])
    return lines
