"""`make reproduce-frames`: what Grossniklaus, Maier, Moorthy and Tufte measure of frames on freeway data.

Their data is not published; it is drawn so that the frames of one sensor over 62 days are about those of
their table 1, which counts 267,840 readings, as many as one sensor gives. The cost is that of 600 sensors,
each with other jams, in Spark by the stage's own function. It is compared with their frame-like window query
and with reading alone; both queries have to find the same frames. A fill is reported with each row of its
frame, so its latency is that of these rows.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from deltalake import write_deltalake
from rich.console import Console

from bench import version
from bench.measure import machine, run, spark_submit
from bench.ways import paths
from reproduce import freeway
from reproduce.framing import (
    BOUNDS,
    MORE,
    estimates,
    frames_of,
    framing_of,
    hundreds,
    latencies,
    one_sensor,
    steadiness,
    table,
)
from reproduce.freeway import DAYS, KINDS, Sensors, flow, stream_of
from reproduce.report import finish, markdown, verdict

FOLDER = Path(__file__).resolve().parents[2] / ".transom" / "reproductions" / "frames"
MADE_BY = (*version.DRAWING, Path(freeway.__file__))
TABLE = {"short": (302, 38, 0.043), "medium": (3071, 39, 0.447), "long": (866, 278, 0.899)}
"""Table 1 of the paper: number of frames, mean number of readings, and share of all readings."""
SENSORS = 600
SPANS = (1, 7, 30, 60)
"""Numbers of days of data."""
WINDOWED = (1, 7)
"""Numbers of days for which the frame-like window query runs."""
FRAGMENTS = (1, 2, 4, 8, None)
"""Hours between the fragments of a frame; None reports whole frames only."""
PARTITIONS = 64
NEAR = 0.15
"""Share by which a value may differ from the paper's."""
STRAIGHT = 0.98
Row = Mapping[str, Any]
console = Console(highlight=False)


def tables() -> Iterator[Row]:
    """Yield rows of table 1, the latencies of fragments, and the speed of finding frames of one sensor."""
    readings = one_sensor(DAYS)
    for kind, (compare, bound) in BOUNDS.items():
        holds = compare(readings.value, bound)
        reports = frames_of(readings, framing_of(kind), holds, DAYS)
        many, mean, share = table(reports, DAYS)
        waits = {hours: latencies(readings, holds, reports, hours) / 6e7 for hours in FRAGMENTS}
        yield {"kind": kind, "frames": many, "mean": mean, "share": share, "waits": waits}


def drawn(sensors: int, days: int) -> Path:
    """Return a lake with the readings of sensors; create it if it does not exist."""
    lake = version.folder(FOLDER / f"lake-{sensors}-{days}", MADE_BY)
    if not (lake / "whole").exists():
        shutil.rmtree(lake, ignore_errors=True)
        with console.status(f"drawing {sensors} sensors, {days} days"):
            for day, (speed, there) in enumerate(Sensors(sensors, days).by_day()):
                rows = freeway.events(day, speed, there)
                write_deltalake(f"{lake}/freeway/events", rows, partition_by=["hour"], mode="append")
        (lake / "whole").touch()
    return lake


def costs(sensors: int, spans: Sequence[int], windowed: Sequence[int]) -> Iterator[Row]:
    """Yield seconds and peak memory of each way, kind and number of days.

    Raises:
        SystemExit: two ways find different frames.
    """
    lake, stream = drawn(sensors, max(spans)), stream_of(FOLDER)
    for days in spans:
        for kind in KINDS:
            ways = ["frames", *(["windows"] if days in windowed else [])]
            found = {way: _gone(way, kind, stream, lake, days) for way in ways}
            totals = {way: row.pop("totals") for way, row in found.items()}
            if len({tuple(total) for total in totals.values()}) > 1:
                sys.exit(f"{days} days, {kind}: the frames differ: {totals}")
            yield from found.values()
        row = _gone("reading", "short", stream, lake, days)
        yield {**row, "kind": "-", "totals": None}


def _gone(way: str, kind: str, stream: Path, lake: Path, days: int) -> dict[str, Any]:
    result = FOLDER / f"{way}-{kind}-{days}.json"
    script = Path(__file__).with_name("peer_freeway.py")
    arguments = (script, way, kind, stream, lake, days, 2 if days < 30 else 1, result)
    with console.status(f"{way}, {kind}, {days} days"):
        measured = run(spark_submit(*arguments, partitions=PARTITIONS), result.with_suffix(".log"), paths())
    facts = json.loads(result.read_text())
    row = {"way": way, "kind": kind, "days": days, "seconds": min(facts["seconds"])}
    console.print(f"{days} days, {way}, {kind}: {row['seconds']} s", highlight=False)
    return {**row, "peak_mib": measured.peak_mib, "totals": facts["totals"]}


def steady() -> Mapping[str, Any]:
    """Return the errors of speeds estimated from the vehicles of frames, and of as many fixed windows."""
    of = flow(DAYS)
    ends = hundreds(of, framing_of("hundred"))
    length = len(of.vehicles) // len(ends)
    fixed = np.arange(length, len(of.vehicles) + 1, length)
    return {
        "frames": len(ends),
        "minutes": length * freeway.EVERY / 60,
        "errors": {
            f"frames of more than {MORE} vehicles": steadiness(*estimates(of, ends)),
            "as many fixed windows": steadiness(*estimates(of, fixed)),
        },
    }


def verdicts(one: Sequence[Row], cost: Sequence[Row], estimate: Mapping[str, Any]) -> list[str]:
    """Compare the claims of the paper with the results, one line per claim."""
    claims = []
    for row in one:
        many, mean, share = TABLE[row["kind"]]
        off = max(abs(row["frames"] / many - 1), abs(row["mean"] / mean - 1), abs(row["share"] / share - 1))
        counted = f"{row['frames']} frames of {row['mean']:.0f} readings, {row['share']:.1%} of all"
        claims.append(
            verdict(off < NEAR, f"table 1: {row['kind']}: {counted} ({many}, {mean}, {share:.1%} there)")
        )
    frame = pd.DataFrame(cost)
    ours = frame[frame.way == "frames"]
    for kind, some in ours.groupby("kind", sort=False):
        straight = float(np.corrcoef(some["days"], some["seconds"])[0, 1] ** 2)
        claims.append(
            verdict(straight > STRAIGHT, f"figure 10: {kind} is linear in the data (R2 {straight:.4f})")
        )
    wide = frame.pivot_table("seconds", ["kind", "days"], "way")[["windows", "frames"]].dropna()
    ratios = wide["windows"] / wide["frames"]
    text = f"window queries take {ratios.min():.1f} to {ratios.max():.1f} times as long as frames"
    claims.append(verdict(bool(ratios.min() > 1), f"figure 10: {text}"))
    gains = {row["kind"]: row["waits"][None].mean() / row["waits"][1].mean() for row in one}
    text = ", ".join(f"{kind} {gain:.1f}" for kind, gain in gains.items())
    best = gains["long"] == max(gains.values()) and gains["long"] > 2
    claims.append(verdict(best, f"figure 11: fragments of an hour cut latency by a factor of: {text}"))
    spread = {way: max(errors) / min(errors) for way, errors in estimate["errors"].items()}
    text = ", ".join(f"{way} {ratio:.1f}" for way, ratio in spread.items())
    steadier = next(iter(spread.values())) < min([*spread.values()][1:])
    claims.append(verdict(steadier, f"estimates: an hour's error at worst, to that at best: {text}"))
    return claims


def written(
    one: Sequence[Row], cost: Sequence[Row], estimate: Mapping[str, Any], claims: Sequence[str]
) -> list[str]:
    """Write tables, plots and values, and return the lines of the report."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    parts = [f"# Frames on freeway data\n\n{machine()}.\n", *(f"- {text}" for text in claims)]
    lines = [
        [row["kind"], KINDS[row["kind"]], row["frames"], f"{row['mean']:.1f}", f"{row['share']:.1%}", *there]
        for row in one
        for many, mean, share in [TABLE[row["kind"]]]
        for there in [(many, mean, f"{share:.1%}")]
    ]
    head = ["kind", "as long as", "frames", "readings", "of all", "frames there", "readings", "of all"]
    parts += [f"\n## Table 1: one sensor, {DAYS} days\n", *markdown(head, lines)]
    wide = pd.DataFrame(cost).pivot_table("seconds", "days", ["kind", "way"])
    names = [(kind, way) for kind in KINDS for way in ("frames", "windows")]
    lines = [
        [days, *(_figure(row[name]) for name in names), _figure(row["-", "reading"])]
        for days, row in wide.iterrows()
    ]
    head = ["days", *(f"{kind}, {way}" for kind, way in names), "reading alone"]
    parts += ["\n## Figure 10: seconds, of all sensors\n", *markdown(head, lines)]
    lines = [
        [row["kind"], "none" if hours is None else f"{hours} h", f"{waits.mean():.0f}",
         f"{np.quantile(waits, 0.95):.0f}", f"{waits.max():.0f}"]
        for row in one
        for hours, waits in row["waits"].items()
    ]  # fmt: skip
    head = ["kind", "fragments", "mean", "of 95 %", "longest"]
    parts += ["\n## Figure 11: minutes from a reading to the fill that counts it\n", *markdown(head, lines)]
    lines = [[way, f"{min(e):.2f}", f"{max(e):.2f}"] for way, e in estimate["errors"].items()]
    head = [f"{estimate['frames']} of them, windows of {estimate['minutes']:.1f} minutes", "least", "most"]
    parts += ["\n## Error of estimated speeds, of an hour of the day\n", *markdown(head, lines)]
    (FOLDER / "report.md").write_text("\n".join(parts) + "\n")
    _draw(one, cost, estimate)
    return parts


def _draw(one: Sequence[Row], cost: Sequence[Row], estimate: Mapping[str, Any]) -> None:
    seconds = pd.DataFrame(cost)
    x, y = alt.X("days:Q", title="days of data"), alt.Y("seconds:Q")
    plot = alt.Chart(seconds).mark_line(point=True).encode(x=x, y=y, color="kind:N", strokeDash="way:N")
    plot.save(FOLDER / "figure-10.svg")
    waits = pd.DataFrame(
        {"kind": row["kind"], "fragment": hours or 24, "minutes": w.mean()}
        for row in one
        for hours, w in row["waits"].items()
    )
    x = alt.X("fragment:Q", title="hours to a fragment (24: none)", scale=alt.Scale(type="log"))
    y = alt.Y("minutes:Q", title="mean minutes to the fill")
    alt.Chart(waits).mark_line(point=True).encode(x=x, y=y, color="kind:N").save(FOLDER / "figure-11.svg")
    errors = pd.DataFrame(
        {"hour": hour, "way": way, "error": error}
        for way, some in estimate["errors"].items()
        for hour, error in enumerate(some)
    )
    y = alt.Y("error:Q", title="root mean square error of speed")
    plot = alt.Chart(errors).mark_line(point=True).encode(x="hour:Q", y=y, color="way:N")
    plot.save(FOLDER / "estimates.svg")


def _figure(seconds: float) -> str:
    return "" if np.isnan(seconds) else f"{seconds:.1f}"


def main() -> None:
    """Generate the sensors, run all ways, write the results, and exit with 1 if a claim fails."""
    parser = argparse.ArgumentParser(prog="reproduce-frames", description=__doc__)
    parser.add_argument("--sensors", type=int, default=SENSORS, help=f"of the costs ({SENSORS})")
    sensors = parser.parse_args().sensors
    one, estimate = [*tables()], steady()
    cost = [*costs(sensors, SPANS, WINDOWED)]
    claims = verdicts(one, cost, estimate)
    console.print("\n".join([*written(one, cost, estimate, claims), "", *claims]), soft_wrap=True)
    finish("frames", FOLDER, claims)


if __name__ == "__main__":
    main()
