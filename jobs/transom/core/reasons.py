"""Why an hour is quarantined, blocked or incomplete, as data. The code uses the data; the text is for
people."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["check", "file", "withheld_file", "inputs", "earlier", "waits"]


@dataclass(frozen=True)
class Cause:
    """One reason.

    Attributes:
        kind: `check`, a check of the hour failed; `file`, a file of the hour is held back or incomplete;
            `withheld_file`, it lacks rows of a quarantined file of any hour; `inputs`, input hours of other
            tables are incomplete; `earlier`, earlier hours of its own table are incomplete; `waits`, an input
            hour is not published.
        text: the same for people. No code depends on it.
        about: the name of the check, the path of the file, or the hour that it waits for
            (`PartitionKey.key`).
    """

    kind: Kind
    text: str
    about: str | None = None


def format_causes(causes: Iterable[Cause]) -> str | None:
    """Return all causes as one text; None if there are none."""
    return "; ".join(cause.text for cause in causes) or None


def write(causes: Iterable[Cause]) -> str:
    """Return causes as JSON text for the ledger."""
    return json.dumps([[cause.kind, cause.text, cause.about] for cause in causes])


def read(text: str) -> tuple[Cause, ...]:
    """Return the causes from a text of `write`."""
    return tuple(Cause(kind, words, about) for kind, words, about in json.loads(text))
