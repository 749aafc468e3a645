"""Entries of the stream file that may end, with who made them and why.

An end is a time of the events, never of the clock: rows before it stay as they are when it has passed.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, StrictStr

from transom.core.intervals import format_hour
from transom.spec.base import Hour, Model, NonEmptyStr
from transom.spec.errors import Issue, join


def _plain(value: Any) -> Any:
    if not isinstance(value, bool | int | str):
        raise ValueError(f"must be a text, an integer or a truth value; got {value!r}")
    return value


# Checked before: a union would report each error three times.
KeyValue = Annotated[StrictBool | StrictInt | StrictStr, BeforeValidator(_plain)]


class Ending(Model):
    """An entry that may end."""

    until: Hour | None = None
    """The end, exclusive, UTC, by the time of the events. Default: none. It takes `who` and `why`."""
    who: NonEmptyStr | None = None
    """The person who is responsible for the entry."""
    why: NonEmptyStr | None = None
    """The reason for the entry."""

    def _rules(self) -> Iterator[Issue]:
        if self.until is not None:
            yield from (Issue(name, "is required with until") for name in self._unsigned())

    def _unsigned(self) -> list[str]:
        return [name for name in ("who", "why") if getattr(self, name) is None]

    def describe(self) -> str:
        """Return the end, who made the entry, and why."""
        assert self.until is not None
        return f"{format_hour(self.until)} ({self.who}: {self.why})"


class SuppressSpec(Ending):
    """Findings of a block that the table `findings` omits; the rows of the block's own tables stay.

    With `until`, these are the findings that end by then.
    """

    stage: str
    """The stage of the block."""
    block: str
    """The name of the block."""
    key: dict[str, KeyValue] = Field(default_factory=dict)
    """Values of columns of the block's key or item. Default: all findings of the block."""

    def _rules(self) -> Iterator[Issue]:
        yield from (Issue(name, "is required") for name in self._unsigned())


def endings(part: Any, place: str = "") -> Iterator[tuple[str, Ending]]:
    """Yield the entries with an end in a part of a stream file, with their paths."""
    if isinstance(part, Model):
        if isinstance(part, Ending) and part.until is not None:
            yield place, part
        for name in type(part).model_fields:
            yield from endings(getattr(part, name), join(place, name))
    elif isinstance(part, Mapping):
        for name, value in part.items():
            yield from endings(value, join(place, str(name)))
    elif isinstance(part, tuple | list):
        for index, value in enumerate(part):
            yield from endings(value, f"{place}[{index}]")
