"""`make reproduce-widening`: the case study of Progressive Window Widening (Tolpin, section 5).

A trace of system calls, one each unit of time, holds episodes that betray a remote shell, with growing delays
between their calls. They are detected in windows that widen, by the listing and by the form that the stages
use. In the paper's reading every call counts among the L that an episode spans; in transom's own, those count
that a step of an episode can take. They are also detected in windows of one size, which overlap by half, as
in the paper. Both forms have to detect the same before any value is printed.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from rich.console import Console

from bench.measure import machine
from reproduce.detection import Detected, fixed, listed, records, vectorised
from reproduce.report import finish, markdown, verdict
from reproduce.trace import Calls, Episode, drawn, parsed
from transom.features.patterns.algorithm.widening import Widening

FOLDER = Path(__file__).resolve().parents[2] / ".transom" / "reproductions" / "widening"
MOST = 100
"""The maximum number of records of a match, L."""
SHORT, LONG = 32, 1024
"""Maximum durations of episodes that two fixed windows always detect, in units; windows are twice as long."""
DURATIONS = (*range(8, 97, 8), *range(128, LONG + 1, 64))
LONGEST = 450
"""Maximum duration in the plot of work, in units; the fixed window is made for it. With R(l) = l², a window
for longer episodes costs more than widening at every t, and one for shorter episodes less."""
WORK_DURATIONS = (*range(8, 97, 8), 150, 250, 350, LONGEST)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 2 * MOST)
"""Durations of the initial batch; a longer one may contain more than 2L calls."""
COSTS = ("R(l) = l", "R(l) = l²")
WAYS = ("widening, all calls", "widening, own stream", "short window", "long window")
Row = Mapping[str, Any]
console = Console(highlight=False)


def delays(durations: Sequence[int], repeats: int) -> Iterator[Row]:
    """Yield a row per episode and way, with the delay after its last call; None if it is not detected.

    Raises:
        SystemExit: the two forms differ, or a way detects something that is no episode.
    """
    lines, episodes = drawn([*durations] * repeats)
    calls = parsed(lines)
    console.print(f"delay: {len(episodes)} episodes in {len(lines):,} calls")
    own = calls.taken(calls.bits > 0)
    widening = Widening(1, max(durations), MOST)
    found = {
        WAYS[0]: both(calls, widening, "delay, all calls"),
        WAYS[1]: both(own, widening, "delay, own stream"),
        WAYS[2]: fixed(records(own), SHORT),
        WAYS[3]: fixed(records(own), LONG),
    }
    for way, one in found.items():
        console.print(f"delay: {way} detects {len(one.ends)} of {len(episodes)} episodes")
        for unknown in one.ends.keys() - set(episodes):
            sys.exit(f"{way}: {unknown} is no episode")
        for episode in episodes:
            end = one.ends.get(episode)
            delay = None if end is None else end - episode.last
            yield {"way": way, "duration": episode.last - episode.first, "delay": delay}


def both(calls: Calls, widening: Widening, where: str) -> Detected:
    """Detect with the listing and the vectorised form, and return the result and work of the listing.

    Raises:
        SystemExit: the two forms differ.
    """
    plain, quick = listed(records(calls), widening), vectorised(calls, widening)
    if plain.ends != quick.ends:
        sys.exit(f"{where}: the vectorised form does not detect what the listing does")
    return plain


def works(durations: Sequence[int], repeats: int, batches: Sequence[int]) -> Iterator[Row]:
    """Yield a row per initial batch, stream and way, with the work of the detector per unit of time.

    Raises:
        SystemExit: the two forms differ, or a way does not detect exactly the episodes.
    """
    lines, episodes = drawn([*durations] * repeats)
    calls = parsed(lines)
    console.print(f"work: {len(episodes)} episodes in {len(lines):,} calls")
    streams = {"all calls": calls, "own stream": calls.taken(calls.bits > 0)}
    longest = max(durations)
    for stream, some in streams.items():
        in_one = fixed(records(some), longest)
        _all_found(in_one, episodes, f"one fixed window, {stream}")
        for batch in batches:
            widening, where = Widening(batch, longest, MOST), f"{stream}, batches of {batch}"
            found = {"listing": both(some, widening, where), "transom": vectorised(some, widening)}
            near = [one for one in episodes if one.last - one.first < MOST]
            _all_found(found["listing"], near if stream == "all calls" else episodes, where)
            for way, one in [*found.items(), ("fixed window", in_one)]:
                yield {
                    "batch": batch,
                    "levels": widening.levels,
                    "stream": stream,
                    "way": way,
                    COSTS[0]: one.work.linear / len(lines),
                    COSTS[1]: one.work.square / len(lines),
                    "ms": one.work.seconds * 1e6 / len(lines),
                }
            console.print(f"work: {where}: {found['listing'].work.linear:,} records shown by the listing")


def _all_found(found: Detected, episodes: Sequence[Episode], where: str) -> None:
    if found.ends.keys() != set(episodes):
        sys.exit(f"{where}: what is detected is not what there is")


def bound(cost: str, batch: int) -> float:
    """Return the bound of theorem 2, `2 R(4L) / t`, for a unit of time."""
    return 2 * float(4 * MOST) ** (1 + COSTS.index(cost)) / batch


def delay_verdicts(rows: Sequence[Row]) -> list[str]:
    """Compare the claims of figure 5, and of its section on fixed windows, with the results."""
    table = pd.DataFrame(rows)
    widened = table[table.way == WAYS[1]]
    of_all = table[table.way == WAYS[0]]
    there = widened.dropna()
    slope = float(np.polyfit(there.duration, there.delay, 1)[0]) if len(there) > 1 else 0.0
    near = of_all.duration < MOST
    short, long = table[table.way == WAYS[2]], table[table.way == WAYS[3]]
    slow = short[short.duration > 2 * SHORT]
    quick = table[table.duration <= SHORT].groupby("way").delay.mean()
    ratio = float(quick[WAYS[3]] / quick[WAYS[1]])
    return [
        verdict(
            bool(widened.delay.notna().all()),
            "every episode is detected, once, however slow, and nothing else",
        ),
        verdict(
            bool((of_all.delay.notna() == near).all()),
            f"where every call counts, these are the episodes that span at most L = {MOST} calls",
        ),
        verdict(
            0.45 < slope < 0.55, f"figure 5: the delay grows linearly with the duration, slope {slope:.3f}"
        ),
        verdict(
            bool(slow.delay.isna().all()) and bool(long.delay.notna().all()),
            f"a short fixed window misses all {len(slow)} episodes slower than its {2 * SHORT} units",
        ),
        verdict(
            ratio > 10, f"a long fixed window is late for the short ones: {ratio:.0f} times the mean delay"
        ),
    ]


def work_verdicts(rows: Sequence[Row]) -> list[str]:
    """Compare the claims of figure 6, and some beyond it, with the results."""
    table = pd.DataFrame(rows)
    claims = []
    for cost in COSTS:
        wide = table.pivot_table(cost, "batch", ["stream", "way"])
        plain, in_one = wide["all calls", "listing"], wide["all calls", "fixed window"]
        share = plain / [bound(cost, batch) for batch in plain.index]
        low, high = float(share.iloc[0]), float(share.iloc[-1])
        so = bool(share.is_monotonic_increasing) and 0.8 < high <= 1
        shares = f"{low:.1%} of it at t = {plain.index[0]}, {high:.1%} at t = {plain.index[-1]}"
        claims.append(verdict(so, f"figure 6, {cost}: work approaches the bound from below: {shares}"))
        below = (plain < in_one).tolist()
        if cost == COSTS[0]:
            least = float((plain / in_one).min())
            text = f"not in the paper, {cost}: one fixed window always does less, at best {least:.2f} times"
            claims.append(verdict(not any(below), text))
        else:
            at = next((i for i, yes in enumerate(below) if yes), None)
            since = "never" if at is None else f"from t = {plain.index[at]} on"
            so = at is not None and all(below[at:])
            claims.append(verdict(so, f"figure 6, {cost}: work is below one fixed window's {since}"))
        own, same = wide["own stream", "transom"], wide["own stream", "fixed window"]
        least, most = float((in_one / own).min()), float((own / same).max())
        text = f"transom on its own stream, {cost}: at least {least:.0f} times less than one fixed window"
        claims.append(
            verdict(least > 1, f"{text} of all calls, at most {most:.1f} times one of the same stream")
        )
    return claims


def written(delay_rows: Sequence[Row], work_rows: Sequence[Row], claims: Sequence[str]) -> list[str]:
    """Return the tables of the report; write the report, plots and values into the folder."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    tables = [*delay_table(delay_rows), *work_tables(work_rows)]
    head = [
        f"# Progressive Window Widening, figures 5 and 6\n\n{machine()}.\n",
        *(f"- {text}" for text in claims),
    ]
    (FOLDER / "report.md").write_text("\n".join([*head, *tables]) + "\n")
    results = {"machine": machine(), "delays": list(delay_rows), "works": list(work_rows)}
    (FOLDER / "results.json").write_text(json.dumps(results, indent=1))
    table = pd.DataFrame(delay_rows).dropna()
    x = alt.X("duration:Q", title="duration of the episode, units")
    y = alt.Y("mean(delay):Q", title="mean delay of its detection, units")
    plot = alt.Chart(table).mark_line(point=True).encode(x=x, y=y, color=alt.Color("way:N", sort=list(WAYS)))
    plot.properties(width=460, height=320).save(str(FOLDER / "figure-5.svg"))
    for number, cost in enumerate(COSTS, 1):
        works = pd.DataFrame(work_rows)
        works = works.assign(what=works.way + ", " + works.stream, work=works[cost])[
            ["batch", "what", "work"]
        ]
        of_bound = pd.DataFrame(
            {"batch": BATCHES, "what": "bound", "work": [bound(cost, t) for t in BATCHES]}
        )
        x = alt.X("batch:Q", title="initial batch, units", scale=alt.Scale(type="log"))
        y = alt.Y("work:Q", title=f"work of a unit of time, {cost}", scale=alt.Scale(type="log"))
        plot = alt.Chart(pd.concat([works, of_bound])).mark_line(point=True).encode(x=x, y=y, color="what:N")
        plot.properties(width=460, height=320).save(str(FOLDER / f"figure-6-{number}.svg"))
    return tables


def delay_table(rows: Sequence[Row]) -> list[str]:
    """Return the mean delay per duration and way, with the number of detected episodes if some are missed."""
    lines = []
    for duration in sorted({row["duration"] for row in rows}):
        line = [str(duration)]
        for way in WAYS:
            some = [row["delay"] for row in rows if (row["way"], row["duration"]) == (way, duration)]
            seen = [delay for delay in some if delay is not None]
            missed = f" ({len(seen)} of {len(some)})" if seen and len(seen) < len(some) else ""
            line.append(f"{fmean(seen):,.1f}{missed}" if seen else "missed")
        lines.append(line)
    title = "\n## Figure 5: mean delay of detection, in units, by the duration of the episode\n"
    return [title, *markdown(["duration", *WAYS], lines)]


def work_tables(rows: Sequence[Row]) -> list[str]:
    """Return the work of a unit of time per cost, and the detectors' time, which the paper does not claim."""
    table = pd.DataFrame(rows)
    columns = [(s, w) for s in ("all calls", "own stream") for w in ("listing", "transom", "fixed window")]
    names = [f"{way}, {stream}" for stream, way in columns]
    parts = []
    for figured, title in (
        *((cost, f"work of a unit of time, {cost}") for cost in COSTS),
        ("ms", "milliseconds of the detector (of transom: of all) for 1000 units"),
    ):
        wide = table.pivot_table(figured, ["batch", "levels"], ["stream", "way"]).reset_index()
        claimed = figured in COSTS
        head = ["t", "levels", *(["bound", "listing / bound"] if claimed else []), *names]
        lines = []
        for _, row in wide.iterrows():
            batch, levels = (int(row[name, ""]) for name in ("batch", "levels"))
            most = bound(figured, batch) if claimed else 1
            share = [_rounded(most), f"{row['all calls', 'listing'] / most:.1%}"] if claimed else []
            lines.append([str(batch), str(levels), *share, *(_rounded(row[column]) for column in columns)])
        parts += [f"\n## Figure 6: {title}\n", *markdown(head, lines)]
    return parts


def _rounded(figure: float) -> str:
    """Format a value with three digits."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def main() -> None:
    """Generate the traces, detect in all ways, write the results, and exit with 1 if a claim fails."""
    parser = argparse.ArgumentParser(prog="reproduce-widening", description=__doc__)
    parser.add_argument("--repeats", type=int, default=24, help="episodes of each duration (24)")
    repeats = parser.parse_args().repeats
    delay_rows = [*delays(DURATIONS, repeats)]
    work_rows = [*works(WORK_DURATIONS, repeats, BATCHES)]
    claims = [*delay_verdicts(delay_rows), *work_verdicts(work_rows)]
    console.print("\n".join([*written(delay_rows, work_rows, claims), "", *claims]), soft_wrap=True)
    finish("widening", FOLDER, claims)


if __name__ == "__main__":
    main()
