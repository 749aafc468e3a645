"""Paths of a record's values, and formats of its times, for columns and times."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator

from transom.formats.record_format import EPOCH_OR_ISO, EPOCHS
from transom.spec.base import NonEmptyStr
from transom.spec.errors import Issue

_DIRECTIVES = "aAbBdfHIjmMpSyYzZ%"


def split_paths(text: str) -> tuple[str, ...]:
    """Return the alternatives of `a | b`.

    Raises:
        ValueError: one of them is empty.
    """
    paths = tuple(path.strip() for path in text.split("|"))
    if not all(paths):
        raise ValueError(f"must be a field's path, or several with | between them; got {text!r}")
    return paths


def _paths(text: str) -> str:
    split_paths(text)
    return text


def _time_format(text: str) -> str:
    if text in ("iso", EPOCH_OR_ISO) or text in EPOCHS:
        return text
    parts = [text[index + 1 : index + 2] for index in _percent_signs(text)]
    unknown = [part for part in parts if not part or part not in _DIRECTIVES]
    if not parts:
        raise ValueError(
            f"must be iso, {', '.join(EPOCHS)}, {EPOCH_OR_ISO}, or a strptime format; got {text!r}"
        )
    if unknown:
        raise ValueError(f"unknown part %{unknown[0]} in the time format; got {text!r}")
    if "Y" not in parts and "y" not in parts:
        raise ValueError(f"must hold the year, else the time is not known; got {text!r}")
    if "Z" in parts and (text.split().count("%Z") != 1 or parts.count("Z") != 1 or "z" in parts):
        raise ValueError(
            "%Z, letters of a zone such as CET, must be a word of its own, once and without %z; other "
            f"letters can be written as they stand, and the zone given by `zone`; got {text!r}"
        )
    return text


def _percent_signs(text: str) -> Iterable[int]:
    at = text.find("%")
    while at >= 0:
        yield at
        at = text.find("%", at + 2)


Paths = Annotated[NonEmptyStr, AfterValidator(_paths)]
"""The path of a field, or several with `|` between them."""

TimeFormat = Annotated[str, AfterValidator(_time_format)]
"""iso, one of the epochs, epoch_or_iso, or a strptime format with the year."""


def zone_problems(format: str | None, zone: str | None) -> list[Issue]:
    """Return what is wrong with the zone of times in a format."""
    if format in EPOCHS and zone is not None:
        return [Issue("zone", f"times since the epoch have none; got {zone!r}")]
    return []
