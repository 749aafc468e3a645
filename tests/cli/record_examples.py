"""Examples of records in records: a log, and the stream file that `transom init` made of it."""

from pathlib import Path

from tests.cli.examples import DATA

RECORD_EXAMPLES = {
    "container": ("container.log", 59, 1),
    "web_error": ("web_error.log", 48, 0),
    "otlp": ("otlp.json", 21, 0),
    "orders": ("orders.json", 48, 0),
    "auditd": ("auditd.log", 61, 0),
}
"""The log of each, and how many events and refused lines it has."""


def log_of(name: str) -> Path:
    """Return the log of an example."""
    return DATA / "examples" / RECORD_EXAMPLES[name][0]
