"""Examples of nested records: a log, and the stream file that `transom init` drafted from it."""

from pathlib import Path

from tests.cli.examples import DATA

RECORD_EXAMPLES = {
    "container": ("container.log", 59, 1),
    "web_error": ("web_error.log", 48, 0),
    "otlp": ("otlp.json", 21, 0),
    "orders": ("orders.json", 48, 0),
    "auditd": ("auditd.log", 61, 0),
}
"""The log of each example, with its number of events and of rejected lines."""


def log_of(name: str) -> Path:
    """Return the log of an example."""
    return DATA / "examples" / RECORD_EXAMPLES[name][0]
