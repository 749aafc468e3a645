"""Generate logs for the benchmarks, column by column: the same lines for the same count.

Three days of Zeek's connections (TSV) and of Apache's combined log, with 10,000 clients; a few clients have
most lines. Each hour has its own seed, and becomes a gzip file and a part of one plain file.
"""

import gzip
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bench import version

FIRST = datetime(2024, 3, 4, tzinfo=UTC)
HOURS = 72
END = FIRST + timedelta(hours=HOURS)
CLIENTS = 10_000
SEED = 20240304

Rng = np.random.Generator
Int64s = npt.NDArray[np.int64]

ZEEK_FIELDS = (
    "ts uid id.orig_h id.orig_p id.resp_h id.resp_p proto service duration orig_bytes resp_bytes conn_state "
    "local_orig local_resp missed_bytes history orig_pkts orig_ip_bytes resp_pkts resp_ip_bytes"
)
ZEEK_TYPES = (
    "time string addr port addr port enum string interval count count string bool bool count string count "
    "count count count"
)
_TABS = "\t".join
ZEEK_HEADER = (
    "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tconn\n"
    f"#fields\t{_TABS(ZEEK_FIELDS.split())}\n#types\t{_TABS(ZEEK_TYPES.split())}\n"
).encode()


@dataclass(frozen=True)
class Log:
    """A generated log.

    Attributes:
        hourly: the path pattern of its hourly files, in the folder of the log.
        plain: the path of its plain file, in the same folder.
        header: the text at the beginning of each file.
        lines: generates n lines of the hour that begins at some second, in order.
    """

    name: str
    hourly: str
    plain: str
    header: bytes
    lines: Callable[[Rng, int, int], pa.Array]


def zipf(rng: Rng, n: int, values: int, exponent: float = 1.1) -> Int64s:
    """Draw n ranks from 0 to `values` - 1 with frequencies by Zipf's law: the first are most frequent."""
    weights = 1 / np.arange(1, values + 1) ** exponent
    edges = np.cumsum(weights / weights.sum())
    found: Int64s = np.minimum(np.searchsorted(edges, rng.random(n)), values - 1).astype(np.int64)
    return found


def _addresses(ranks: Int64s, network: int) -> pa.Array:
    # Scatter them over the network, so that busy clients have no adjacent addresses.
    places = ranks * 7919 % 65_536
    parts = [pa.array(part).cast(pa.string()) for part in (places // 256, places % 256)]
    return pc.binary_join_element_wise(pa.scalar(f"10.{network}"), *parts, ".")


def _seconds(micros: Int64s) -> pa.Array:
    """Format microseconds as seconds with six decimals, like Zeek."""
    parts = pa.array(micros // 1_000_000).cast(pa.string()), pa.array(micros % 1_000_000).cast(pa.string())
    return pc.binary_join_element_wise(parts[0], pc.utf8_lpad(parts[1], 6, "0"), ".")


def _words(rng: Rng, n: int, length: int, letters: str) -> pa.Array:
    table = np.frombuffer(letters.encode(), dtype=np.uint8)
    buffer = pa.py_buffer(table[rng.integers(0, len(table), (n, length))].tobytes())
    drawn = pa.FixedSizeBinaryArray.from_buffers(pa.binary(length), n, [None, buffer])
    return drawn.cast(pa.binary()).cast(pa.string())


def _choice(rng: Rng, n: int, values: Sequence[str], weights: Sequence[float]) -> pa.Array:
    edges = np.cumsum(np.asarray(weights) / np.sum(weights))
    index = np.minimum(np.searchsorted(edges, rng.random(n)), len(values) - 1)
    return pa.array(values).take(pa.array(index))


def _count(values: Int64s) -> pa.Array:
    return pa.array(values).cast(pa.string())


def _unset(missing: npt.NDArray[np.bool_], text: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(missing), "-", text)


def zeek_lines(rng: Rng, n: int, second: int) -> pa.Array:
    """Generate connections that end within the hour, in the order of their ends."""
    end = np.sort(second * 1_000_000 + rng.integers(0, 3_600_000_000, n))
    duration = np.minimum(rng.exponential(8e6, n), 7.2e9).astype(np.int64)
    short = rng.random(n) < 0.15
    start = np.where(short, end, end - duration)
    sent, received = rng.lognormal(6, 2, n).astype(np.int64), rng.lognormal(8, 2.5, n).astype(np.int64)
    packets = 1 + sent // 900, 1 + received // 1200
    ports = ("443", "53", "80", "22", "123", "445", "3389")
    fields = [
        _seconds(start),
        pc.binary_join_element_wise("C", _words(rng, n, 17, _BASE62), ""),
        _addresses(zipf(rng, n, CLIENTS, 0.7), 1),
        _count(rng.integers(1024, 65_536, n)),
        _addresses(zipf(rng, n, 20_000), 2),
        _choice(rng, n, ports, (50, 25, 12, 3, 5, 3, 2)),
        _choice(rng, n, ("tcp", "udp", "icmp"), (70, 29, 1)),
        _choice(rng, n, ("ssl", "dns", "http", "-", "ssh"), (45, 25, 10, 18, 2)),
        _unset(short, _seconds(duration)),
        _unset(short, _count(sent)),
        _unset(short, _count(received)),
        _choice(rng, n, ("SF", "S0", "REJ", "RSTO", "OTH"), (80, 8, 4, 5, 3)),
        _choice(rng, n, ("T", "F"), (85, 15)),
        _choice(rng, n, ("T", "F"), (30, 70)),
        _choice(rng, n, ("0", "1460"), (99, 1)),
        _choice(rng, n, ("ShADadFf", "Dd", "S", "ShADadfFr", "ShAdDaFf"), (50, 25, 8, 7, 10)),
        *(_count(values) for values in (packets[0], sent + 40 * packets[0])),
        *(_count(values) for values in (packets[1], received + 40 * packets[1])),
    ]
    return pc.binary_join_element_wise(*fields, "\t")


def apache_lines(rng: Rng, n: int, second: int) -> pa.Array:
    """Generate requests within the hour, in order."""
    moments = np.sort(second + rng.integers(0, 3600, n))
    stamp = pc.strftime(pa.array(moments).cast(pa.timestamp("s", "UTC")), "%d/%b/%Y:%H:%M:%S +0000")
    pages = pa.array([f"/{_SECTIONS[i % 7]}/{'item-' * (i % 4)}{i * 7919 % 99991}" for i in range(5_000)])
    query = _choice(rng, n, ("", "?page=2", "?utm_source=feed&utm_medium=rss"), (85, 10, 5))
    path = pc.binary_join_element_wise(pages.take(pa.array(zipf(rng, n, 5_000))), query, "")
    referers = pa.array(["-", *(f"https://www.example.org/from/{i}" for i in range(300))])
    agents = pa.array(
        [f"Mozilla/5.0 (X11; Linux x86_64; rv:{60 + i % 60}.0) {_AGENT[i % 3]}/{i}" for i in range(200)]
    )
    status = _choice(rng, n, ("200", "304", "404", "301", "500"), (80, 8, 6, 5, 1))
    size = _unset(rng.random(n) < 0.08, _count(rng.lognormal(8, 2, n).astype(np.int64)))
    method = _choice(rng, n, ("GET", "POST", "HEAD"), (92, 6, 2))
    user = _choice(rng, n, ("-", "frank", "mary"), (97, 2, 1))
    return pc.binary_join_element_wise(
        _addresses(zipf(rng, n, CLIENTS, 0.7), 1), " - ", user, " [", stamp, '] "', method, " ", path,
        ' HTTP/1.1" ', status, " ", size, ' "', referers.take(pa.array(zipf(rng, n, 301, 0.8))), '" "',
        agents.take(pa.array(zipf(rng, n, 200))), '"', "",
    )  # fmt: skip


_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SECTIONS = ("blog", "images/thumbs", "articles", "api/v2/items", "static/css", "presentations", "files")
_AGENT = ("Gecko/20100101 Firefox", "AppleWebKit/537.36 (KHTML, like Gecko) Chrome", "compatible; Feedreader")

LOGS = {
    "zeek": Log("zeek", "zeek/%Y-%m-%d/conn.%H.log.gz", "zeek-plain/conn.log", ZEEK_HEADER, zeek_lines),
    "apache": Log("apache", "apache/%Y-%m-%d/access.%H.log.gz", "apache-plain/access.log", b"", apache_lines),
}


def _hour(name: str, folder: Path, hour: int, n: int) -> bytes:
    """Generate an hour, write its gzip file, and return its lines."""
    log, start = LOGS[name], FIRST + timedelta(hours=hour)
    lines = log.lines(np.random.default_rng([SEED, hour]), n, int(start.timestamp()))
    # Add the line ends without a loop over lines.
    text = pc.binary_join_element_wise(lines, "\n", "").cast(pa.large_string())
    data = text.buffers()[2].to_pybytes() if n else b""
    file = folder / start.strftime(log.hourly)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(log.header + data, 4, mtime=0))
    return data


def drawn(cache: Path, name: str, count: int) -> Path:
    """Return the folder of a log of `count` lines; generate it if it does not exist."""
    log, folder = LOGS[name], version.folder(cache / f"{name}-{count}", version.DRAWING)
    if (folder / "whole").exists():
        return folder
    plain = folder / log.plain
    plain.parent.mkdir(parents=True, exist_ok=True)
    sizes = np.diff(np.linspace(0, count, HOURS + 1).astype(np.int64)).tolist()
    with ProcessPoolExecutor(2) as pool, plain.open("wb") as whole:
        whole.write(log.header)
        for data in pool.map(_hour, [name] * HOURS, [folder] * HOURS, range(HOURS), sizes):
            whole.write(data)
    (folder / "whole").touch()
    return folder
