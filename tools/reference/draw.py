"""Logs for the streams of the README, drawn: three days of each, the same for the same seed."""

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

FIRST = datetime(2024, 5, 13, tzinfo=UTC)
HOURS = 72
HOUR = timedelta(hours=1)

Lines = dict[str, list[str]]
"""The lines of each file of an hour, by its path."""


def _moments(rng: Random, hour: datetime, many: int) -> list[datetime]:
    return sorted(hour + timedelta(milliseconds=rng.randrange(3_600_000)) for _ in range(many))


def web(rng: Random, hour: datetime) -> Lines:
    """Requests, few of which fail; in one hour too many do."""
    lines = []
    for at in _moments(rng, hour, rng.randrange(20, 60)):
        status = rng.choice([200] * 8 + [404, 500 if hour.hour % 11 == 3 else 304])
        sent = rng.choice(["-", rng.randrange(9000)])
        path = rng.choice(["/", "/a", "/b"])
        lines.append(
            f'10.0.0.{rng.randrange(6)} - - [{at:%d/%b/%Y:%H:%M:%S +0000}] "GET {path} HTTP/1.1" {status} '
            f'{sent} "-" "agent"'
        )
    return {f"landing/web/{hour:%Y-%m-%d}/access.{hour:%H}.log.gz": lines}


def sensors(rng: Random, hour: datetime) -> Lines:
    """A file a local day, written with its last hour."""
    end = hour + HOUR
    local = end + timedelta(hours=2)
    if local.hour:
        return {}
    rows = ["device_id;temp;measured_at"]
    for at in _moments(rng, end - 24 * HOUR, 200):
        temp = rng.choice(["", "-999", f"{rng.uniform(15, 25):.2f}"])
        rows.append(f"{rng.choice('abc')};{temp};{at + timedelta(hours=2):%d.%m.%Y %H:%M:%S}")
    return {f"landing/sensors/roof/{end - HOUR:%Y-%m-%d}.csv.gz": rows}


def doors(rng: Random, hour: datetime) -> Lines:
    """Failures in bursts, some of which end in a success."""
    events = [
        (at, rng.choice("xyz"), rng.choice(["failure", "success", "reset"])) for at in _moments(rng, hour, 8)
    ]
    if rng.random() < 0.4:
        start = hour + timedelta(minutes=rng.randrange(40))
        user = rng.choice("xyz")
        events += [(start + timedelta(minutes=n), user, "failure") for n in range(6)]
        events.append((start + timedelta(minutes=rng.randrange(7, 19)), user, "success"))
    lines = [
        json.dumps({"at": at.isoformat(), "user": user, "host": rng.choice("hk"), "what": what})
        for at, user, what in sorted(events)
    ]
    return {f"doors/{hour:%Y-%m-%d}/auth.{hour:%H}.jsonl": lines}


def roads(rng: Random, hour: datetime) -> Lines:
    """Readings every 20 seconds of three sensors, one of which falls silent and two of which have jams."""
    rows = ["at,sensor,speed,vehicles"]
    for number in range(0, 3600, 20):
        at = hour + timedelta(seconds=number)
        for sensor in "abc":
            if (sensor == "c" and hour.hour in (4, 5)) or rng.random() < 0.05:
                continue
            slow = (hour.hour + ord(sensor)) % 7 == 0 and 600 < number < 2700
            speed = rng.uniform(5, 29) if slow else rng.uniform(25, 90)
            rows.append(f"{at.isoformat()},{sensor},{speed:.1f},{rng.randrange(9)}")
    return {f"roads/{hour:%Y-%m-%d}/{hour:%H}.csv.gz": rows}


def weather(rng: Random, hour: datetime) -> Lines:
    """What another stream says, which fills the frames of the roads."""
    rows = ["at,rain"] + [f"{at.isoformat()},{rng.uniform(0, 3):.1f}" for at in _moments(rng, hour, 6)]
    return {f"weather/{hour:%Y-%m-%d}/{hour:%H}.csv.gz": rows}


def calls(rng: Random, hour: datetime) -> Lines:
    """One call each hour again and again, among others."""
    events = [(hour + timedelta(minutes=7), "10.0.0.7", "203.0.113.9", 443)]
    events += [(at, "10.0.0.5", "10.0.0.1", 53) for at in _moments(rng, hour, 3)]
    events += [
        (
            at,
            f"10.0.0.{rng.randrange(9)}",
            rng.choice(["192.168.0.1", f"198.51.100.{rng.randrange(40)}"]),
            rng.choice([22, 80]),
        )
        for at in _moments(rng, hour, 40)
    ]
    lines = [
        json.dumps({"at": at.isoformat(), "source": source, "target": target, "port": port})
        for at, source, target, port in sorted(events)
    ]
    return {f"calls/{hour:%Y-%m-%d}/{hour:%H}.jsonl": lines}


def flows(rng: Random, hour: datetime) -> Lines:
    """A few sources have most of the flows."""
    lines = []
    for at in _moments(rng, hour, 120):
        source = f"10.0.0.{min(rng.randrange(40), rng.randrange(40), rng.randrange(40))}"
        target = f"198.51.100.{rng.randrange(20)}"
        lines.append(json.dumps({"at": at.isoformat(), "source": source, "target": target}))
    return {f"flows/{hour:%Y-%m-%d}/{hour:%H}.jsonl": lines}


WEATHER = """
name: weather
source: {path: "weather/%Y-%m-%d/%H.csv.gz", format: csv}
columns: {at: {type: timestamp}, rain: {type: number, resolution: 0.1}}
time: {column: at, format: iso}
"""
DRAWN = {of.__name__: of for of in (web, sensors, doors, weather, roads, calls, flows)}


def hours(name: str) -> Iterator[tuple[datetime, Lines]]:
    """The files of each hour."""
    for number in range(HOURS):
        hour = FIRST + number * HOUR
        yield hour, DRAWN[name](Random(f"{name} {number}"), hour)


def land(folder: Path, files: Lines) -> None:
    """Writes files of an hour."""
    for path, lines in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line}\n" for line in lines).encode()
        file.write_bytes(gzip.compress(text, mtime=0) if path.endswith(".gz") else text)
