"""Makes the lakes, with the code that is on the path: of this commit, or of an earlier one.

Usage: spark-submit make.py CHECKOUT FOLDER
"""

import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import yaml
from deltalake import write_deltalake

import sample_logs
from reference import draw
from reference.draw import FIRST, HOUR, HOURS
from transom.stream import load, parse


def _module(*names: str) -> Any:
    """The first module that is there: its name at one commit or at another."""
    for name in names:
        with suppress(ModuleNotFoundError):
            return import_module(name)
    raise ModuleNotFoundError(names[0])


run_stages = _module("transom.app.pipeline", "transom.together").run_stages
try_in = _module("transom.cli.try_command", "transom.cli.trying").try_in
Interval = _module("transom.core.intervals", "transom.intervals").Interval
session = _module("transom.storage.session", "transom.lake.session").session

Run = Callable[[Any, datetime, datetime], None]
EXAMPLES = {
    "conn_tsv": ("examples/conn.tsv.log",), "nginx": ("examples/nginx.access.log",),
    "readings": ("examples/readings.2024-03-30.csv",), "audit": ("examples/audit.json",),
    "firewall": ("examples/firewall.log",), "trace": ("examples/trace.log",),
    "balancer": ("examples/balancer.log",), "flow": ("examples/flow.log",),
    "gateway": ("examples/gateway.log",), "station": ("examples/station.dat",),
    "conn_iso": ("examples/conn.iso.log",), "container": ("examples/container.log",),
    "web_error": ("examples/web_error.log",), "orders": ("examples/orders.json",),
    "otlp": ("examples/otlp.json",), "auditd": ("examples/auditd.log",),
}  # fmt: skip


def main(checkout: str, folder: str) -> None:
    """Makes them all."""
    code, place = Path(checkout), Path(folder)
    spark = session("reference")
    lake = str(place / "lake")
    os.environ["TRANSOM_LANDING"] = str(place / "landing")

    def run(stream: Any, start: datetime, end: datetime) -> None:
        run_stages(spark, stream, Interval(start, end), lake=lake, command="")

    _samples(code, place / "landing", run)
    texts = _readme(code, place)
    for name, text in texts.items():
        print(f"reference: {name}", flush=True)
        _drawn(name, parse(yaml.safe_load(text)), place / "landing", run)
    for name, logs in EXAMPLES.items():
        print(f"reference: {name}", flush=True)
        data = code / "tests" / "data"
        (place / "try" / name).mkdir(parents=True)
        stream, files = data / "examples" / f"{name}.yaml", [data / log for log in logs]
        try_in(place / "try" / name, f"{place}/tried/{name}", stream, files, spark)
    spark.stop()


def _samples(code: Path, landing: Path, run: Run) -> None:
    """The two streams of the checkout, over the sample logs."""
    for name, path, hours in (
        ("web", sample_logs.WEB, sample_logs.apache()), ("conn", sample_logs.CONN, sample_logs.zeek()),
    ):  # fmt: skip
        print(f"reference: sample {name}", flush=True)
        for hour, lines in hours.items():
            sample_logs.land(landing, path, hour, lines)
        stream = load(code / "schemas" / "streams" / f"{name}.yaml")
        run(stream.model_copy(update={"name": f"sample_{name}"}), min(hours), max(hours) + HOUR)


def _readme(code: Path, place: Path) -> dict[str, str]:
    """The streams of README and documentation, and one that one of them reads."""
    pages = [code / "README.md", *sorted((code / "docs").rglob("*.md"))]
    text = "\n".join(page.read_text() for page in pages)
    shown = re.findall(r"^```yaml(?: title=\"\w+\")?\n(.*?)^```$", text, re.M | re.S)
    named = [(yaml.safe_load(text).get("name"), text) for text in shown]
    texts = {name: text for name, text in named if name} | {"weather": draw.WEATHER}
    outside = place.parent / "outside"
    if not outside.exists():
        _outside(outside)
    return {name: texts[name].replace("/data/", f"{outside}/") for name in draw.DRAWN}


def _outside(folder: Path) -> None:
    """What is not of a stream; the same tables for both sides, as hours are made of their files' names."""
    known = pa.table({"address": [f"198.51.100.{n}" for n in range(5)]})
    write_deltalake(f"{folder}/known_services", known)
    begins = [FIRST + timedelta(hours=5 * n, minutes=7) for n in range(12)]
    works = pa.table(
        {
            "begins": pa.array(begins, pa.timestamp("us", "UTC")),
            "station": ["abc"[n % 3] for n in range(12)],
            "lanes": pa.array([n % 4 for n in range(12)], pa.int64()),
        }
    )
    write_deltalake(f"{folder}/roadworks", works)


def _drawn(name: str, stream: Any, landing: Path, run: Run) -> None:
    """Three days in runs of any hours in any order, with files that come late and one that is changed."""
    rng = Random(f"runs of {name}")
    files = list(draw.hours(name))
    late = [(hour, lines) for hour, lines in files if rng.random() < 0.15]
    for hour, lines in files:
        if (hour, lines) not in late:
            draw.land(landing, lines)
    starts = sorted({0, *(rng.randrange(HOURS) for _ in range(4))})
    parts = list(zip(starts, [*starts[1:], HOURS], strict=True))
    rng.shuffle(parts)
    for number, (start, end) in enumerate(parts):
        run(stream, FIRST + start * HOUR, FIRST + end * HOUR)
        if number == len(parts) // 2:
            _land_all(landing, late[: len(late) // 2])
    _land_all(landing, late[len(late) // 2 :])
    run(stream, FIRST, FIRST + HOURS * HOUR)


def _land_all(landing: Path, files: Iterable[tuple[datetime, draw.Lines]]) -> None:
    for _, lines in files:
        draw.land(landing, lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
