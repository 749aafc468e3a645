"""From a file to a stream, with everything that is wrong said at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from transom.stream.errors import Location, Problem, SpecificationError, problems_of
from transom.stream.files import read_mapping
from transom.stream.model import Stream


def load(path: str | Path) -> Stream:
    """Return the stream that a YAML file declares.

    Raises:
        SpecificationError: the file cannot be read or breaks a rule; its text has every problem, each
            with the field's path, the rule and the value.
    """
    return parse(read_mapping(path), str(path))


def parse(data: Mapping[str, Any], name: str = "stream") -> Stream:
    """Return the stream that a mapping declares; `name` is for errors.

    Raises:
        SpecificationError: as `load`.
    """
    try:
        return Stream.model_validate(data)
    except ValidationError as error:
        found = problems_of(error, Stream)
    problems = [problem for _, problem in found]
    # Rules between fields are only looked at where each field is sound. Take the unsound ones out, and
    # look again, so that a person sees those problems, too, at the first try.
    rest = _without(data, [location for location, _ in found])
    if rest is not None:
        try:
            Stream.model_validate(rest)
        except ValidationError as error:
            problems += [problem for _, problem in problems_of(error, Stream) if problem not in problems]
    raise SpecificationError(name, _ordered(problems))


INDEPENDENT = frozenset(("accept", "heal", "retention", "chunk", "start", "until", "tags", "title", "owner"))
"""Fields that nothing else in the file depends on."""


def _without(data: Mapping[str, Any], locations: list[Location]) -> dict[str, Any] | None:
    """Return the data less its unsound parts, None where other parts depend on them."""
    rest = {field: dict(value) if isinstance(value, Mapping) else value for field, value in data.items()}
    for location in locations:
        if not location:
            return None
        field = str(location[0])
        if field in rest and field not in Stream.model_fields:
            del rest[field]
        elif field in ("aggregate", "checks") and len(location) > 1 and isinstance(rest[field], dict):
            rest[field].pop(location[1], None)
        elif field in INDEPENDENT:
            rest.pop(field, None)
        else:
            return None
    return rest


def _ordered(problems: list[Problem]) -> list[Problem]:
    """Return the problems in the order of the file's fields, unknown ones first."""
    fields = list(Stream.model_fields)

    def place(problem: Problem) -> int:
        field = problem.path.partition(".")[0].partition("[")[0]
        return fields.index(field) if field in fields else -1

    return sorted(problems, key=place)
