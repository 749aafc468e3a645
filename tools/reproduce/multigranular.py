"""`make reproduce-multigranular`: figures 5 to 8 of Patroumpas and Sellis, and what they omit.

The paper's settings where it gives them: 100,000 connections a unit of time, five levels, the widest range 40
units. What it measures in C++ tuple by tuple is here a unit's connections added up by numpy and granules that
climb the chain in Python. Then follows the comparison that the paper omits, one window query for each
granularity. Each setting's answers are compared with those from the connections themselves and with the
vectorised form that the stage uses, before any value is printed.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from rich.console import Console

from bench.measure import machine
from reproduce.connections import PROTOCOLS, Connections, drawn
from reproduce.operations import Aggregation, Operation, Recurrence, Regression
from reproduce.report import finish, markdown, verdict
from reproduce.ways import Found, from_tuples, separate, stairwise
from transom.features.aggregates.algorithm.granules import WindowLevel

FOLDER = Path(__file__).resolve().parents[2] / ".transom" / "reproductions" / "multigranular"
RATE = 100_000
LEVELS = (WindowLevel(4, 1), WindowLevel(8, 2), WindowLevel(16, 4), WindowLevel(24, 8), WindowLevel(40, 8))
"""Five levels, the widest with 40 units; fewer levels omit those below it, from the top."""
DRAWN = 44
"""Number of generated units; a longer stream repeats them."""
WAYS = {"stairwise": stairwise, "separate": separate, "from tuples": from_tuples}
FLAT = 2.0
"""A cost counts as nearly flat if its maximum is less than this factor times its minimum."""
Row = Mapping[str, Any]
console = Console(highlight=False)


def of_levels(many: int) -> tuple[WindowLevel, ...]:
    """Return two to five levels, the widest with 40 units."""
    return (*LEVELS[: many - 1], LEVELS[-1])


def of_granules(many: int) -> tuple[WindowLevel, ...]:
    """Return five levels of `many` granules each, of 1, 2, 4, 8 and 16 units."""
    return tuple(WindowLevel(many * 2**k, 2**k) for k in range(5))


def of_range(many: int) -> tuple[WindowLevel, ...]:
    """Return `many` levels, each twice as long as the one below."""
    return tuple(WindowLevel(4 * 2**k, 2**k) for k in range(many))


def settings() -> Iterator[tuple[str, str, int, int, Sequence[WindowLevel], int]]:
    """Yield the paper's figure, axis, position on it, rate, levels and protocols of each setting."""
    many = len(PROTOCOLS)
    for rate in (10_000, 20_000, 50_000, RATE):
        yield "5", "connections a unit", rate, rate, LEVELS, many
    for levels in (2, 3, 4, 5):
        yield "6", "levels", levels, RATE, of_levels(levels), many
    for granules in (2, 5, 10, 20):
        yield "7", "granules a level", granules, RATE, of_granules(granules), many
    for levels in (3, 4, 5, 10):
        for items in (5, 10):
            yield "8", "levels", levels, 1000, of_range(levels), items


def measured(units: int) -> Iterator[Row]:
    """Yield a row for each of the paper's figures, setting, operation and way.

    Raises:
        SystemExit: two ways give different answers.
    """
    for figure, axis, at, rate, levels, items in settings():
        pool = drawn(DRAWN, rate, items)
        stream = [pool[unit % DRAWN] for unit in range(levels[-1].range + units)]
        operations: list[Operation[Any]] = [Aggregation(), Regression(), Recurrence()]
        for of in operations if figure != "8" or items == len(PROTOCOLS) else operations[2:]:
            found = {way: _best(make, of, stream, levels) for way, make in WAYS.items()}
            _compare(of, found, stream, levels, f"figure {figure}, {at} {axis}")
            name = f"{of.name}, {items} items" if figure == "8" and of.name == "recurrence" else of.name
            for way, one in found.items():
                row = {"figure": figure, "axis": axis, "at": at, "operation": name, "way": way}
                yield {**row, "unit_ms": round(one.unit_ms, 4), "state_kb": round(one.state_kb, 3)}


def _best(
    make: Any, of: Operation[Any], stream: Sequence[Connections], levels: Sequence[WindowLevel]
) -> Found:
    """Run a way five times, or once if it is slow, and return the fastest result."""
    found: list[Found] = [make(of, stream, levels) for _ in range(1 if make is from_tuples else 5)]
    return min(found, key=lambda one: one.unit_ms)


def _compare(
    of: Operation[Any],
    found: Mapping[str, Found],
    stream: Sequence[Connections],
    levels: Sequence[WindowLevel],
    where: str,
) -> None:
    """Exit unless all ways and the vectorised form give the same answers for full windows."""
    answers = {way: one.answers for way, one in found.items()} | {"vectorised": of.vectorised(stream, levels)}
    top = len(levels) - 1
    whole = {
        way: {
            at: answer
            for at, answer in some.items()
            # The paper queries recurring items when all windows have slid.
            if at[1] >= levels[-1].range and (of.name != "recurrence" or at[0] == top)
        }
        for way, some in answers.items()
    }
    for way, full in whole.items():
        if not full or full != whole["from tuples"]:
            sys.exit(f"{where}: {of.name} {way} differs from the connections")


def verdicts(rows: Sequence[Row]) -> list[str]:
    """Compare the claims of the paper with the results, one line per claim."""
    found = []
    table = pd.DataFrame(rows)
    chain = table[table.way == "stairwise"]
    for name, some in chain[chain.figure == "5"].groupby("operation"):
        straight = float(np.corrcoef(some["at"], some["unit_ms"])[0, 1] ** 2)
        found.append(verdict(straight > 0.97, f"figure 5: {name} is linear in the rate (R2 {straight:.3f})"))
    for figure, what in (("6", "the number of levels"), ("7", "the granules of a level")):
        for name, some in chain[chain.figure == figure].groupby("operation"):
            ratio = some["unit_ms"].max() / some["unit_ms"].min()
            found.append(
                verdict(ratio < FLAT, f"figure {figure}: {name} is nearly flat in {what} (x {ratio:.2f})")
            )
    state = table[table.figure == "8"].pivot_table("state_kb", ["operation", "at"], "way")
    least = (state["from tuples"] / state["stairwise"]).min()
    found.append(verdict(least > 10, f"figure 8: connections take at least {least:,.0f} times the memory"))
    most = table[table.figure.isin(["6", "7"])].pivot_table("unit_ms", ["figure", "operation", "at"], "way")
    for way in ("separate", "from tuples"):
        ratios = most[way] / most["stairwise"]
        factors = f"{ratios.min():.1f} to {ratios.max():.1f}"
        found.append(
            verdict(ratios.min() > 1, f"not in the paper: windows {way} take {factors} times as long")
        )
    return found


def written(rows: Sequence[Row], claims: Sequence[str]) -> None:
    """Write tables, plots and values."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(rows)
    parts = [f"# Multi-granular windows, figures 5 to 8\n\n{machine()}.\n", *(f"- {text}" for text in claims)]
    for figure, some in table.groupby("figure"):
        figured = "state_kb" if figure == "8" else "unit_ms"

        measure = "KB of state" if figure == "8" else "milliseconds of computing a unit of time"
        title = f"Figure {figure}: {measure}"
        wide = some.pivot_table(figured, ["operation", "at"], "way", sort=False).reset_index()
        axis = some["axis"].iloc[0]
        head = ["operation", axis, *WAYS]
        lines = [
            [row.operation, row["at"], *(f"{row[way]:,.3f}" for way in WAYS)] for _, row in wide.iterrows()
        ]
        parts += [f"\n## {title}\n", *markdown(head, lines)]
        x = alt.X("at:Q", title=axis)
        y = alt.Y(f"{figured}:Q", title=title.partition(": ")[2], scale=alt.Scale(type="log"))
        plot = alt.Chart(some).mark_line(point=True)
        plot = plot.encode(
            x=x,
            y=y,
            color="operation:N",
            strokeDash=alt.StrokeDash("way:N", sort=list(WAYS), legend=alt.Legend(symbolType="stroke")),
        )
        plot.properties(title=title, width=460, height=320).save(str(FOLDER / f"figure-{figure}.svg"))
    (FOLDER / "report.md").write_text("\n".join(parts) + "\n")
    (FOLDER / "results.json").write_text(json.dumps({"machine": machine(), "rows": list(rows)}, indent=1))


def main() -> None:
    """Measure all settings, write the results, and exit with 1 if a claim fails."""
    parser = argparse.ArgumentParser(prog="reproduce-multigranular", description=__doc__)
    parser.add_argument("--units", type=int, default=80, help="of time, once the widest window is full (80)")
    rows = []
    for row in measured(parser.parse_args().units):
        rows.append(row)
        cost = f"{row['state_kb']:,.2f} KB" if row["figure"] == "8" else f"{row['unit_ms']:.3f} ms"
        console.print(
            f"figure {row['figure']}: {row['at']} {row['axis']}, {row['operation']} {row['way']}: {cost}"
        )
    claims = verdicts(rows)
    written(rows, claims)
    console.print("\n".join(["", *claims]))
    finish("multigranular", FOLDER, claims)


if __name__ == "__main__":
    main()
