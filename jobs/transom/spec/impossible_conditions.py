"""Conditions that no row can meet, as far as bounds of single columns tell.

A condition narrows what is known of the columns that it compares, as for a row that meets it; where nothing
is left of one, there is no such row. What is not understood narrows nothing, so a condition that a row meets
is never called impossible.
"""

from collections.abc import Iterator

from transom.spec.stream_fields import StreamFields
from transom.spec.value_domains import Domain, Tested, possible


def impossible(stream: StreamFields) -> Iterator[str]:
    """Yield, in words, which conditions of a stream no row can meet."""
    tested = [Tested("where", stream.where, event_domains(stream))] if stream.where is not None else []
    for feature in stream.features:
        tested += feature.conditions(stream)
    for one in tested:
        if not possible(one.text, one.domains):
            yield f"{one.place}: no row can meet {' '.join(one.text.split())!r}{one.why}"


def own_where(stream: StreamFields, path: str, where: str | None) -> Iterator[Tested]:
    """Yield the `where` of a block that takes events, unless it is the stream's."""
    if where is not None and where != stream.where:
        yield Tested(f"{path}.where", where, event_domains(stream))


def event_domains(stream: StreamFields) -> dict[str, Domain]:
    """Return what is known of the columns of events: the kind of number, and what means no value."""
    known = {"event_time": Domain(null=False)}
    for name, field in stream.event_columns.items():
        if field.type == "integer":
            absent = {int(text) for text in field.missing if text.removeprefix("-").isdecimal()}
            known[name] = Domain(whole=True, but=frozenset(absent))
        elif field.type == "string":
            known[name] = Domain(but=frozenset(field.missing))
    return known
