"""Find conditions that no row can meet, by bounds of single columns.

A condition narrows the domains of the columns that it compares. If a domain becomes empty, no row meets the
condition. Other parts narrow nothing, so a condition that some row meets is never reported.
"""

from collections.abc import Iterator

from transom.spec.stream_fields import StreamFields
from transom.spec.value_domains import Domain, Tested, possible


def impossible(stream: StreamFields) -> Iterator[str]:
    """Yield a message for each condition of a stream that no row can meet."""
    tested = [Tested("where", stream.where, event_domains(stream))] if stream.where is not None else []
    for feature in stream.features:
        tested += feature.conditions(stream)
    for condition in tested:
        if not possible(condition.text, condition.domains):
            yield f"{condition.place}: no row can meet {' '.join(condition.text.split())!r}{condition.why}"


def own_where(stream: StreamFields, path: str, where: str | None) -> Iterator[Tested]:
    """Yield the `where` of a block that reads events, unless it is the stream's."""
    if where is not None and where != stream.where:
        yield Tested(f"{path}.where", where, event_domains(stream))


def event_domains(stream: StreamFields) -> dict[str, Domain]:
    """Return the domains of the event columns: whole numbers, and no text that means no value."""
    known = {"event_time": Domain(null=False)}
    for name, field in stream.event_columns.items():
        if field.type == "integer":
            absent = {int(text) for text in field.missing if text.removeprefix("-").isdecimal()}
            known[name] = Domain(whole=True, excluded=frozenset(absent))
        elif field.type == "string":
            known[name] = Domain(excluded=frozenset(field.missing))
    return known
