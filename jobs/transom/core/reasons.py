"""Reasons why an hour is quarantined, blocked or incomplete, as data and as text."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["check", "file", "quarantined_file", "inputs", "earlier", "waits"]


@dataclass(frozen=True)
class Reason:
    """One reason.

    Attributes:
        kind: `check`, a check of the hour failed. `file`, a file of the hour is quarantined or incomplete.
            `quarantined_file`, it lacks rows of a quarantined file of any hour. `inputs`, input hours of
            other tables are incomplete. `earlier`, earlier hours of its own table are. `waits`, an input
            hour is not published.
        text: the reason, for messages. No code depends on it.
        about: the name of the check, the path of the file, or the `PartitionKey.key` of the awaited hour.
    """

    kind: Kind
    text: str
    about: str | None = None


def format_reasons(reasons: Iterable[Reason]) -> str | None:
    """Return all reasons as one text; None if there are none."""
    return "; ".join(reason.text for reason in reasons) or None


def write(reasons: Iterable[Reason]) -> str:
    """Return reasons as JSON text for the ledger."""
    return json.dumps([[reason.kind, reason.text, reason.about] for reason in reasons])


def read(text: str) -> tuple[Reason, ...]:
    """Return the reasons from a text of `write`."""
    return tuple(Reason(kind, words, about) for kind, words, about in json.loads(text))
