"""From a file to a stream, with everything that is wrong said at once."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from transom.stream import checks
from transom.stream.errors import Location, Problem, SpecificationError, problems_of, unknown_fields
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
    except ValidationError:
        sound, problems = _spelled(data)
    found = _found(sound)
    problems += [_of_built_in(location, problem) for location, problem in found]
    # Rules between fields are only looked at where each field is sound. Take the unsound ones out, and
    # look again, so that a person sees those problems, too, at the first try.
    rest = _without(sound, [location for location, _ in found]) if found else None
    if rest is not None:
        more = [problem for _, problem in _found(rest.data)]
        problems += [p for p in more if p not in problems and not rest.explains(p)]
    raise SpecificationError(name, _ordered(problems))


def _found(data: Mapping[str, Any]) -> list[tuple[Location, Problem]]:
    try:
        Stream.model_validate(data)
    except ValidationError as error:
        return problems_of(error, Stream)
    return []


def _spelled(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Problem]]:
    """Return the data with each field that is not known taken for the one that was probably meant, where that
    is not there, else left out; and what is wrong with these.

    So a mistyped name is told by itself, and not once more by all that depends on what it says.
    """
    problems: list[Problem] = []
    while True:
        try:
            Stream.model_validate(data)
        except ValidationError as error:
            unknown = unknown_fields(error, Stream)
            told = dict(problems_of(error, Stream))
        else:
            unknown = {}
        if not unknown:
            return data, problems
        data = deepcopy(dict(data))
        for location, near in unknown.items():
            problems.append(told[location])
            place: Any = data
            for part in location[:-1]:
                place = place[part]
            value = place.pop(location[-1])
            if near is not None:
                place.setdefault(near, value)


def _of_built_in(location: Location, problem: Problem) -> Problem:
    """Return the problem, or that the field is none of a built-in check, whatever its value."""
    if len(location) > 2 and location[0] == "checks" and location[1] in checks.BUILT_IN:
        name, field = str(location[1]), str(location[2])
        if field not in checks.allowed(name):
            return Problem(f"checks.{name}.{field}", checks.only_allowed(name))
    return problem


INDEPENDENT = frozenset(
    (
        "title", "description", "owner", "tags", "rest", "unique", "key", "where", "accept", "heal",
        "retention", "start", "until", "schedule", "catchup", "submit", "chunk",
    )
)  # fmt: skip
"""Fields without which the others can be judged."""
OF_SOURCE = frozenset(("zone", "holds", "settle", "expect", "on_change"))
"""The same, of the source."""


NAMED = frozenset(("columns", "aggregate", "patterns", "checks"))
"""Fields whose parts have names, each of which can be left out by itself."""


@dataclass
class _Rest:
    """What is left of a stream's data without the parts that are unsound.

    Attributes:
        paths: of which nothing more is to be said.
        starts: how messages begin of which a part that was left out is the cause.
    """

    data: dict[str, Any]
    paths: set[str] = field(default_factory=set)
    starts: set[str] = field(default_factory=set)

    def explains(self, problem: Problem) -> bool:
        """Whether a problem is there only since something was left out."""
        return problem.path in self.paths or problem.message.startswith(tuple(self.starts))


def _without(data: Mapping[str, Any], locations: list[Location]) -> _Rest | None:
    """Return the data less its unsound parts, None where other parts depend on them."""
    rest = _Rest({name: dict(part) if isinstance(part, Mapping) else part for name, part in data.items()})
    for location in locations:
        if not location or not _take_out(rest, str(location[0]), location[1:]):
            return None
    return rest


def _take_out(rest: _Rest, name: str, inside: Location) -> bool:
    """Take an unsound part out of the data; whether the others can be judged without."""
    part = rest.data.get(name)
    first = inside[0] if inside else None
    if name == "name":
        rest.data["name"] = "unnamed"
    elif name in INDEPENDENT:
        rest.data.pop(name, None)
        rest.starts |= {"no column 'rest'"} if name == "rest" else set()
        rest.paths |= {"catchup"} if name in ("start", "schedule") else set()
    elif name == "time":
        # What a preset says of it stands in for it.
        rest.data.pop(name, None)
        rest.paths.add("time")
    elif name == "source" and isinstance(part, dict) and first in OF_SOURCE:
        part.pop(first, None)
    elif name == "source" and isinstance(part, dict) and first == "format":
        part.pop("format", None)
        part.pop("options", None)
        rest.paths.add("source.format")
    elif name in NAMED and isinstance(part, dict) and first is not None:
        check = part.get(first)
        if name == "checks" and first in checks.BUILT_IN and len(inside) > 1 and isinstance(check, dict):
            part[first] = {key: value for key, value in check.items() if key != inside[1]}
            return True
        part.pop(first, None)
        kind = {"columns": "column", "aggregate": "block"}.get(name)
        if kind is not None:
            rest.starts |= {f"no {kind} {first!r}", "the stream has no block of aggregate"}
    else:
        return False
    return True


def _ordered(problems: list[Problem]) -> list[Problem]:
    """Return the problems in the order of the file's fields, unknown ones first."""
    fields = list(Stream.model_fields)

    def place(problem: Problem) -> int:
        field = problem.path.partition(".")[0].partition("[")[0]
        return fields.index(field) if field in fields else -1

    return sorted(problems, key=place)
