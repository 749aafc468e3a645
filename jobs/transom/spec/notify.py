"""Recipients of messages about findings, and silences."""

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, StrictInt, StringConstraints
from pydantic.json_schema import WithJsonSchema

from transom.core.durations import Duration
from transom.spec.base import Model, Name, NonEmptyStr
from transom.spec.errors import Issue, did_you_mean

Severity = Literal["high", "medium", "low"]
PAGE = "page"
"""The recipient that every stream has: its messages are recorded, and never sent."""


def _day(value: Any) -> date:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    elif isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise ValueError(f"must be a date such as 2026-11-27; got {value!r}")


Day = Annotated[
    date,
    BeforeValidator(_day),
    PlainSerializer(date.isoformat, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["2026-11-27"]}),
]
"""A date in UTC, written `2026-11-27`."""
DottedPath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")]
"""The path of a class: package, module and name, separated by dots."""


class RecipientSpec(Model):
    """A receiver of messages about findings."""

    notifier: DottedPath
    """The path of a notifier class of Airflow, such as
    airflow.providers.smtp.notifications.smtp.SmtpNotifier."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """The arguments of the notifier. Texts are templates, in which `transom` is the message. Secrets belong
    in a connection of Airflow, of which an argument has the id."""
    severity: tuple[Severity, ...] = ()
    """The severities of the findings to send. Default: all."""
    minimum: Severity | None = None
    """The lowest severity of the findings to send, in place of `severity`."""
    kinds: tuple[NonEmptyStr, ...] = ()
    """The kinds of the findings to send, such as episode or source_silent. Default: all."""
    summary_after: Duration = timedelta(days=2)
    """Findings that ended so long before the last requested hour are sent as one summary of a run, or of all
    runs of a backfill."""
    at_most: Annotated[StrictInt, Field(ge=1, le=100)] = 20
    """The maximum number of messages of a run; more are sent as one summary."""

    def _rules(self) -> Iterator[Issue]:
        if self.severity and self.minimum is not None:
            yield Issue("minimum", "cannot be given with severity; give one of them")


class SilenceSpec(Model):
    """Findings that are recorded and shown, but not sent. All given fields must match. If a finding goes on
    after the end, it is sent then."""

    key: NonEmptyStr | None = None
    """The key or item of the findings, as findings show it, such as 10.0.0.1 or `client=10.0.0.1, path=/`."""
    kind: NonEmptyStr | None = None
    """The kind of the findings."""
    block: Name | None = None
    """The block of the findings."""
    who: NonEmptyStr
    """The person who is responsible for the silence."""
    why: NonEmptyStr
    """The reason for the silence."""
    until: Day
    """The end: the silence ends when this day begins, in UTC."""

    def _rules(self) -> Iterator[Issue]:
        if self.key is None and self.kind is None and self.block is None:
            yield Issue("", "must have at least one of key, kind and block")

    @property
    def text(self) -> str:
        """The end, the person and the reason in a line."""
        return f"until {self.until} by {self.who}: {self.why}"

    def is_active(self, now: datetime) -> bool:
        """Return whether the silence has not ended."""
        return now.astimezone(UTC).date() < self.until

    def matches(self, kind: str, block: str | None, *subjects: str | None) -> bool:
        """Return whether all given fields match a finding of a kind and a block, with a key and an item."""
        is_about = self.key is None or self.key in subjects
        return is_about and self.kind in (None, kind) and self.block in (None, block)


def problems(
    notify: Collection[str], silence: Collection[SilenceSpec], blocks: Mapping[str, Collection[str]]
) -> Iterator[Issue]:
    """Yield the problems of recipients and silences with the rest of a stream.

    Args:
        notify: the names of the recipients.
        silence: the silences.
        blocks: the names of the blocks of each feature.
    """
    if PAGE in notify:
        yield Issue(f"notify.{PAGE}", "every stream has this recipient; choose another name")
    known = [*dict.fromkeys(name for names in blocks.values() for name in names), "events"]
    for index, one in enumerate(silence):
        if one.block is not None and one.block not in known:
            needs = tuple((feature,) for feature in blocks)
            message = f"no block {one.block!r}{did_you_mean(one.block, known)}"
            yield Issue(f"silence[{index}].block", message, needs)
