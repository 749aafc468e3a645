"""The stored examples: a log, and the stream file that a user edited after `transom init`."""

from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data"
EXAMPLES: dict[str, tuple[str, ...]] = {
    "apache": ("apache_access.log.gz",),
    "conn_json": ("zeek_conn_day1.json.gz", "zeek_conn_day2.json.gz"),
    "conn_tsv": ("examples/conn.tsv.log",),
    "nginx": ("examples/nginx.access.log",),
    "readings": ("examples/readings.2024-03-30.csv",),
    "audit": ("examples/audit.json",),
    "firewall": ("examples/firewall.log",),
    "trace": ("examples/trace.log",),
    "balancer": ("examples/balancer.log",),
    "flow": ("examples/flow.log",),
    "gateway": ("examples/gateway.log",),
    "station": ("examples/station.dat",),
    "conn_iso": ("examples/conn.iso.log",),
}
"""The logs of each example, below `DATA`."""
FOREIGN = ("balancer", "flow", "gateway", "station", "conn_iso")
"""Examples in external formats, whose drafts need at most three changed lines."""


def stream_file(name: str) -> Path:
    """Return the stream file of an example."""
    return DATA / "examples" / f"{name}.yaml"


def logs(name: str) -> list[Path]:
    """Return the logs of an example."""
    return [DATA / log for log in EXAMPLES[name]]
