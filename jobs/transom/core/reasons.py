"""Why an hour is withheld, blocked or incomplete, as data: what the code goes by. Its text is for people
alone."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["check", "file", "withheld_file", "inputs", "earlier", "waits"]


@dataclass(frozen=True)
class Cause:
    """One reason.

    Attributes:
        kind: `check`, a check of the hour has failed; `file`, a file of the hour is held back or lacks
            something; `withheld_file`, it lacks what a file holds that is withheld, in whichever hour;
            `inputs`, hours of other tables that it is computed from are incomplete; `earlier`, earlier hours
            of its own table are; `waits`, an hour that it is computed from does not stand.
        text: the same in words. Nothing but what is shown depends on it.
        about: the name of the check, the path of the file, or the hour that it waits for
            (`PartitionKey.key`).
    """

    kind: Kind
    text: str
    about: str | None = None


def format_causes(causes: Iterable[Cause]) -> str | None:
    """Return all causes as one text; None where there are none."""
    return "; ".join(cause.text for cause in causes) or None


def write(causes: Iterable[Cause]) -> str:
    """Return causes as the ledger keeps them."""
    return json.dumps([[cause.kind, cause.text, cause.about] for cause in causes])


def read(text: str) -> tuple[Cause, ...]:
    """Return the causes that `write` has written."""
    return tuple(Cause(kind, words, about) for kind, words, about in json.loads(text))
