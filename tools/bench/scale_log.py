"""Generate an access log of any size in little memory: hourly gzip files, written in pieces.

One key has half of all lines. The others share the rest: a few of them have most of it.
"""

import gzip
import os
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.draw import FIRST, SEED, Int64s, Rng, zipf
from transom.core.intervals import Interval

PIECE = 200_000
"""The maximum number of lines in memory."""
PATHS = 5_000
HOURLY = "scale/%Y-%m-%d/access.%H.log.gz"
STATUSES, METHODS = ("200", "304", "404", "301", "500"), ("GET", "POST", "HEAD")
LONGEST = 100_000
"""The maximum number of bytes of a response."""
BYTES_OF_ONE = 20
"""Disk space of a line in its gzip file, in bytes: more than measured."""


def interval(hours: int) -> Interval:
    """Return the hours of a log."""
    return Interval(FIRST, FIRST + timedelta(hours=hours))


def sizes(count: int, hours: int) -> list[int]:
    """Return the number of lines of each hour."""
    edges = [count * hour // hours for hour in range(hours + 1)]
    return np.diff(edges).tolist()


def land(folder: Path, count: int, keys: int, hours: int) -> None:
    """Write the files of all hours, in two processes."""
    many = sizes(count, hours)
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(_write, [folder] * hours, range(hours), many, [keys] * hours))


def _write(folder: Path, hour: int, count: int, keys: int) -> None:
    """Write the file of an hour."""
    start = FIRST + timedelta(hours=hour)
    file = folder / start.strftime(HOURLY)
    file.parent.mkdir(parents=True, exist_ok=True)
    pieces = -(-count // PIECE)
    # A piece has its own part of the hour, so that the lines of the file are in order.
    edges = [3600 * piece // max(pieces, 1) for piece in range(pieces + 1)]
    with file.open("wb") as raw, gzip.GzipFile("", "wb", 1, raw, mtime=0) as output:
        for piece, lines_of_piece in enumerate(sizes(count, pieces) if pieces else []):
            rng = np.random.default_rng([SEED, hour, piece])
            seconds = rng.integers(edges[piece], edges[piece + 1], lines_of_piece)
            text = lines(rng, np.sort(seconds) + int(start.timestamp()), keys)
            output.write(b"".join(buffer_of(text)))
    # The time of a file is a part of its identity.
    os.utime(file, (start.timestamp() + 3600,) * 2)


def buffer_of(text: pa.Array) -> list[memoryview]:
    """Return the characters of an array of text."""
    buffer = text.cast(pa.large_string()).buffers()[2]
    return [memoryview(buffer)] if buffer is not None else []


def ranks(rng: Rng, count: int, keys: int) -> Int64s:
    """Return a key per line; key 0 has half of them."""
    others = zipf(rng, count, keys - 1, 0.7) + 1
    return np.where(rng.random(count) < 0.5, 0, others)


def lines(rng: Rng, seconds: Int64s, keys: int) -> pa.Array:
    """Return lines with line ends, at the given Unix times."""
    count = len(seconds)
    key = ranks(rng, count, keys)
    client = [pa.array(part).cast(pa.string()) for part in (key >> 16, key >> 8 & 255, key & 255)]
    stamp = pc.strftime(pa.array(seconds).cast(pa.timestamp("s", "UTC")), "%d/%b/%Y:%H:%M:%S +0000")
    path = pa.array(zipf(rng, count, PATHS)).cast(pa.string())
    status = _some(rng, count, STATUSES, (80, 8, 6, 5, 1))
    method = _some(rng, count, METHODS, (92, 6, 2))
    size = pa.array(rng.integers(0, LONGEST, count) // 100 * 100).cast(pa.string())
    return pc.binary_join_element_wise(
        "10.", client[0], ".", client[1], ".", client[2], " - - [", stamp, '] "', method, " /page/", path,
        ' HTTP/1.1" ', status, " ", size, ' "-" "agent"\n', "",
    )  # fmt: skip


def _some(rng: Rng, count: int, values: tuple[str, ...], percent: tuple[int, ...]) -> pa.Array:
    places = np.repeat(np.arange(len(values), dtype=np.int32), percent)[rng.integers(0, 100, count)]
    return pa.array(values).take(pa.array(places))
