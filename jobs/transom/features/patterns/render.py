"""Print patterns for `transom try`: episodes and the first matches, or the reason why there are none."""

from typing import Any

import typer
from deltalake import DeltaTable

from transom.core.durations import format_duration_long
from transom.core.terminal import counted
from transom.core.terminal_tables import plain, table
from transom.features.patterns.spec import Pattern
from transom.spec.stream import Stream
from transom.storage.tables import query

ROWS = 5
"""The number of printed episodes and matches of each pattern."""
LINES = 8
"""The number of printed line numbers of a match."""


def print_episodes(stream: Stream, root: str) -> None:
    """Print the first episodes and matches of each pattern, or how many events meet each of its steps."""
    for name, pattern in stream.blocks(Pattern).items():
        rows = _episodes(f"{root}/episodes", pattern, name)
        if rows:
            columns = [*pattern.key, "start_time", "last_time", "matches", "detected_at", "window"]
            table(f"{name}: episodes, the first", columns, rows)
            _print_matches(pattern, f"{root}/matches", name)
        else:
            typer.echo(f"\n{name}: no episode{_events_by_step(stream, root, name)}")


def _episodes(uri: str, pattern: Pattern, name: str) -> list[list[Any]]:
    """Return the last row of each of the first episodes of a pattern, with the length of the windows that
    showed its first match."""
    if not DeltaTable.is_deltatable(uri):
        return []
    key = [f'"{column}"' for column in pattern.key]
    columns = ", ".join([*key, "start_time", "last_time", "matches", "detected_at", "level"])
    latest = "row_number() OVER (PARTITION BY episode_id ORDER BY hour DESC) AS place"
    rows = query(
        DeltaTable(uri),
        f"SELECT {columns} FROM (SELECT *, {latest} FROM t WHERE block = '{name}') "
        f"WHERE place = 1 AND state <> 'joined' ORDER BY start_time, {columns} LIMIT {ROWS}",
    )
    lengths = (2 * pattern.batch * 2**level for level in rows["level"].to_pylist())
    values = (list(row.values())[:-1] for row in rows.to_pylist())
    return [[*row, format_duration_long(length)] for row, length in zip(values, lengths, strict=True)]


def _print_matches(pattern: Pattern, uri: str, name: str) -> None:
    """Print the first matches: the time of each step, the kept values, and the lines."""
    order = ", ".join(["first_time", *(f'"{column}"' for column in pattern.key), "match_id"])
    first = f"SELECT * FROM t WHERE block = '{name}' ORDER BY {order} LIMIT {ROWS}"
    rows = []
    for match in query(DeltaTable(uri), first).to_pylist():
        steps = [step["time"] for step in match["steps"]] or [match["first_time"], match["last_time"]]
        kept = (", ".join(map(plain, dict.fromkeys(match[f"kept_{column}"]))) for column in pattern.carry)
        lines = [str(record["source_line"]) for record in match["records"]]
        if len(lines) > LINES:
            lines = [*lines[:LINES], f"and {len(lines) - LINES} more"]
        rows.append([*(match[column] for column in pattern.key), *steps, *kept, ", ".join(lines)])
    steps = [f"{step.times} {step.id}" if step.times > 1 else step.id for step in pattern.all_steps]
    columns = [*pattern.key, *(steps or ["first", "last"]), *pattern.carry, "lines"]
    table(f"{name}: the first matches, with the time at which each step begins", columns, rows)


def _events_by_step(stream: Stream, root: str, name: str) -> str:
    """Return, as text, the number of events that meet each step of a pattern: 0 points at its condition."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    from transom.features.patterns.resolve import block_of

    block, steps = block_of(stream, name), stream.blocks(Pattern)[name].all_steps
    events = SparkSession.active().read.format("delta").load(f"{root}/events")
    events = events if block.takes is None else events.where(F.expr(block.takes))
    met = [F.count_if(F.expr(sql)).alias(f"met_{n}") for n, sql in enumerate(block.conditions[: len(steps)])]
    total, *counts = events.agg(F.count("*").alias("all"), *met).collect()[0]
    if not steps:
        return f" in {counted(total, 'event')}"
    by_step = ", ".join(f"{step.id} {count}" for step, count in zip(steps, counts, strict=True))
    unmet = [step.id for step, count in zip(steps, counts, strict=True) if not count]
    advice = f"; look at the `where` of {', '.join(unmet)}" if unmet else ""
    return f"; events that its steps take: {by_step}{advice}"
