"""The contacts of which it is asked how often each host was seen in the last 24 hours: those of
`bench.persistence_log`."""

from pathlib import Path

from bench import held

WINDOW = 24
"""Hours."""
EPSILON, DELTA = 0.01, 0.01
TOP = 20
"""Hosts of each window that are told of."""


def stream_of(folder: Path) -> Path:
    """The stream file."""
    hosts = {
        "item": ["client"], "tick": "5 minutes", "window": f"{WINDOW} hours",
        "epsilon": EPSILON, "delta": DELTA, "top": TOP,
    }  # fmt: skip
    return held.stream_of(folder / "often.yaml", frequency={"hosts": hosts})
