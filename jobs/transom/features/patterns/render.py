"""What patterns have found in a try, printed: episodes, the steps of their first matches; or why there are
none."""

from collections.abc import Sequence
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
"""Episodes and matches of each pattern that are shown."""
LINES = 8
"""Lines of a match that are named."""


def print_episodes(stream: Stream, root: str) -> None:
    """Prints what each pattern has found first; of one that has found nothing, how many events its steps
    take."""
    for name, pattern in stream.blocks(Pattern).items():
        rows = _episodes(f"{root}/episodes", pattern.key, name)
        if not rows:
            typer.echo(f"\n{name}: no episode{_events_by_step(stream, root, name)}")
            continue
        shown = [*pattern.key, "start_time", "last_time", "matches", "told_at", "window"]
        # The length of its windows says more than the number of a level.
        seen = [[*row[:-1], format_duration_long(2 * pattern.batch * 2 ** row[-1])] for row in rows]
        table(f"{name}: episodes, the first", shown, seen)
        _print_matches(stream, f"{root}/matches", name)


def _episodes(uri: str, key: Sequence[str], block: str) -> list[list[Any]]:
    """The episodes of a pattern that began first, as last told, with the level of the first match."""
    if not DeltaTable.is_deltatable(uri):
        return []
    columns = [*(f'"{name}"' for name in key), "start_time", "last_time", "matches", "detected_at", "level"]
    latest = "row_number() OVER (PARTITION BY episode_id ORDER BY hour DESC) AS place"
    found = query(
        DeltaTable(uri),
        f"SELECT {', '.join(columns)} FROM (SELECT *, {latest} FROM t WHERE block = '{block}') "
        f"WHERE place = 1 AND state <> 'joined' ORDER BY start_time, {', '.join(columns)} LIMIT {ROWS}",
    )
    return [list(row.values()) for row in found.to_pylist()]


def _print_matches(stream: Stream, uri: str, name: str) -> None:
    """Prints the first matches: when each step came, what they keep, and which lines they are."""
    pattern = stream.blocks(Pattern)[name]
    order = ", ".join(["first_time", *(f'"{column}"' for column in pattern.key), "match_id"])
    where = f"SELECT * FROM t WHERE block = '{name}' ORDER BY {order} LIMIT {ROWS}"
    rows = []
    for match in query(DeltaTable(uri), where).to_pylist():
        steps = [step["time"] for step in match["steps"]] or [match["first_time"], match["last_time"]]
        kept = (", ".join(map(plain, dict.fromkeys(match[f"kept_{column}"]))) for column in pattern.carry)
        lines = [str(record["source_line"]) for record in match["records"]]
        more = [f"and {len(lines) - LINES} more"] if len(lines) > LINES else []
        rows.append(
            [*(match[column] for column in pattern.key), *steps, *kept, ", ".join([*lines[:LINES], *more])]
        )
    named = [f"{step.times} {step.id}" if step.times > 1 else step.id for step in pattern.all_steps]
    columns = [*pattern.key, *(named or ["first", "last"]), *pattern.carry, "lines"]
    table(f"{name}: the first matches, with the time at which each step begins", columns, rows)


def _events_by_step(stream: Stream, root: str, name: str) -> str:
    """How many events each step of a pattern takes, in words: none is a condition to look at."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    from transom.features.patterns.resolve import block_of

    spark = SparkSession.active()
    block, steps = block_of(stream, name), stream.blocks(Pattern)[name].all_steps
    events = spark.read.format("delta").load(f"{root}/events")
    events = events if block.takes is None else events.where(F.expr(block.takes))
    conditions = block.conditions[: len(steps)]
    many = [F.count_if(F.expr(sql)).alias(f"taken_{n}") for n, sql in enumerate(conditions)]
    counts = events.agg(F.count("*").alias("all"), *many).collect()[0]
    if not steps:
        return f" in {counted(counts[0], 'event')}"
    told = ", ".join(f"{step.id} {n}" for step, n in zip(steps, counts[1:], strict=True))
    none = [step.id for step, n in zip(steps, counts[1:], strict=True) if not n]
    doubt = f"; look at the `where` of {', '.join(none)}" if none else ""
    return f"; events that its steps take: {told}{doubt}"
