"""Stream file for frequent hosts of the last 24 hours, in the contacts of `bench.persistence_log`."""

from pathlib import Path

from bench import drawn_lake

WINDOW = 24
"""Length of the window, in hours."""
EPSILON, DELTA = 0.01, 0.01
TOP = 20
"""Number of reported hosts per window."""


def stream_of(folder: Path) -> Path:
    """Write the stream file."""
    hosts = {
        "item": ["client"], "tick": "5 minutes", "window": f"{WINDOW} hours",
        "epsilon": EPSILON, "delta": DELTA, "top": TOP,
    }  # fmt: skip
    return drawn_lake.stream_of(folder / "often.yaml", frequency={"hosts": hosts})
