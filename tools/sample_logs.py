"""Cut the real logs of the checkout into hourly files, and recount their lines."""

import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
WEB = "landing/web/%Y-%m-%d/access.%H.log.gz"
CONN = "landing/conn/%Y-%m-%d/conn.%H.json.gz"
ZEEK = ("zeek_conn_day1.json.gz", "zeek_conn_day2.json.gz")
HOUR = timedelta(hours=1)

Hours = Mapping[datetime, list[str]]


def apache() -> Hours:
    """Return the lines of the Apache log by the hour of their time, in the log's order.

    The log ends two hours before the end of its last day. These hours have no lines, as a server without
    requests still starts a file each hour.
    """
    hours = _by_hour(("apache_access.log.gz",), _apache_time)
    last = max(hours)
    return {**hours, **{last.replace(hour=quiet): [] for quiet in range(last.hour + 1, 24)}}


def zeek() -> Hours:
    """Return the lines of the Zeek logs by the hour in which the connection ended."""
    return _by_hour(ZEEK, _zeek_time)


def _apache_time(line: str) -> datetime:
    text = line.split("[", 1)[1].split("]", 1)[0]
    return datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z").astimezone(UTC)


def _zeek_time(line: str) -> datetime:
    record = json.loads(line)
    return datetime.fromtimestamp(record["ts"] + record.get("duration", 0), UTC)


def _by_hour(names: Iterable[str], time_of: Callable[[str], datetime]) -> Hours:
    hours: dict[datetime, list[str]] = defaultdict(list)
    for name in names:
        text = gzip.decompress((DATA / name).read_bytes()).decode().removesuffix("\n")
        for line in text.split("\n"):
            hours[time_of(line).replace(minute=0, second=0, microsecond=0)].append(line + "\n")
    return dict(sorted(hours.items()))


def land(folder: Path, path: str, hour: datetime, lines: Iterable[str]) -> Path:
    """Write the compressed file of an hour into the landing folder, and return its path."""
    file = folder / hour.strftime(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    return file


def requests(hours: Hours, start: datetime, end: datetime) -> Counter[str]:
    """Count the requests of each client in whole hours from the raw lines; truncated lines do not count."""
    return Counter(
        line.split()[0]
        for hour, lines in hours.items()
        if start <= hour < end
        for line in lines
        if line.rstrip("\n").endswith('"')
    )


def returns(hours: Hours) -> dict[str, tuple[datetime, list[datetime]]]:
    """Find the clients who requested the front page and probed one to three days later.

    A client probes eight times within an hour.

    Returns:
        By client: the time of the last front page request, and the times of the probes.
    """
    looks: dict[str, list[datetime]] = defaultdict(list)
    probes: dict[str, list[datetime]] = defaultdict(list)
    for line in (line for lines in hours.values() for line in lines if line.rstrip("\n").endswith('"')):
        client, time = line.split()[0], _apache_time(line)
        (method, path, *_), status = line.split('"')[1].split(), line.split('"')[2].split()[0]
        if (path, status) == ("/", "200"):
            looks[client].append(time)
        elif (method, status) == ("HEAD", "404"):
            probes[client].append(time)
    found = {}
    for client, times in probes.items():
        times.sort()
        for first, last in zip(times, times[7:], strict=False):
            before = [
                look for look in looks[client] if first - look >= 24 * HOUR and last - look <= 72 * HOUR
            ]
            if before and last - first <= HOUR:
                found[client] = max(before), times[times.index(first) : times.index(first) + 8]
    return found


def main(folder: Path) -> None:
    """Write the files of all hours of both logs."""
    for path, hours in ((WEB, apache()), (CONN, zeek())):
        for hour, lines in hours.items():
            land(folder, path, hour, lines)
        print(f"landed {len(hours)} files: {folder / path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
