"""From a file to a stream, with everything that is wrong said at once."""

import re
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from transom.formats.record_format import REST
from transom.spec import checks
from transom.spec.checks import BuiltIn
from transom.spec.errors import Issue, Location, SpecificationError, problems_of, unknown_fields
from transom.spec.stream import Stream
from transom.spec.stream_fields import built_in_of
from transom.spec.yaml_file import read_mapping


def load(path: str | Path, of: type[Stream]) -> Stream:
    """Return the stream that a YAML file declares.

    Args:
        of: the type of a stream's file, as `stream_type` makes it.

    Raises:
        SpecificationError: the file cannot be read or breaks a rule; its text has every problem, each
            with the field's path, the rule and the value.
    """
    return parse(read_mapping(path), of, str(path))


def parse(data: Mapping[str, Any], of: type[Stream], name: str = "stream") -> Stream:
    """Return the stream that a mapping declares; `name` is for errors.

    Raises:
        SpecificationError: as `load`.
    """
    try:
        return of.model_validate(data)
    except ValidationError:
        sound, problems = _fix_misspelled_fields(data, of)
    # Rules between fields are only looked at where each field is sound, and some of them only where others
    # are kept. Take the unsound parts out, and look again, so that a person sees all problems at once.
    built_in = built_in_of(of.features)
    rest = _PartialSpec(dict(sound), NAMED | {feature.name for feature in of.features}, built_in)
    while found := _problems_without(rest.data, of):
        problems += [
            _of_built_in(location, problem, built_in)
            for location, problem in found
            if not rest.explains(problem)
        ]
        if not rest.take_out(found):
            break
    raise SpecificationError(name, _ordered(problems, sound, of, rest.named))


def _problems_without(data: Mapping[str, Any], of: type[Stream]) -> list[tuple[Location, Issue]]:
    try:
        of.model_validate(data)
    except ValidationError as error:
        return problems_of(error, of)
    return []


def _fix_misspelled_fields(
    data: Mapping[str, Any], of: type[Stream]
) -> tuple[Mapping[str, Any], list[Issue]]:
    """Return the data with each field that is not known taken for the one that was probably meant, where that
    is not there, else left out; and what is wrong with these.

    So a mistyped name is told by itself, and not once more by all that depends on what it says.
    """
    problems: list[Issue] = []
    while True:
        try:
            of.model_validate(data)
        except ValidationError as error:
            unknown = unknown_fields(error, of)
            told = dict(problems_of(error, of))
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


def _of_built_in(location: Location, problem: Issue, built_in: Mapping[str, BuiltIn]) -> Issue:
    """Return the problem, or that the field is none of a built-in check, whatever its value."""
    if len(location) > 2 and location[0] == "checks" and location[1] in built_in:
        name, field = str(location[1]), str(location[2])
        if field not in checks.allowed(built_in[name]):
            return Issue(f"checks.{name}.{field}", checks.only_allowed(name, built_in[name]))
    return problem


INDEPENDENT = frozenset(
    (
        "title", "description", "owner", "tags", "rest", "unique", "key", "where", "accept", "heal",
        "retention", "start", "until", "schedule", "catchup", "submit", "chunk",
    )
)  # fmt: skip
"""Fields without which the others can be judged."""
NAMED = frozenset(("columns", "checks"))
"""Fields whose parts have names, each of which can be left out by itself; those of features are more."""
ANYWHERE = "unnamed/*"
"""Stands for a path that is wrong."""


@dataclass
class _PartialSpec:
    """What is left of a stream's data without the parts that are unsound.

    Attributes:
        named: the fields whose parts have names.
        built_in: every check that transom makes.
        reported: the fields of which problems have been seen; each is judged once.
        removed: the parts that were taken out.
    """

    data: dict[str, Any]
    named: frozenset[str]
    built_in: Mapping[str, BuiltIn]
    reported: set[str] = field(default_factory=set)
    removed: set[Location] = field(default_factory=set)

    def explains(self, problem: Issue) -> bool:
        """Whether a problem is there only since something was taken out, or was seen before."""
        # What is wrong with a part may also be wrong with all of its parts.
        gone = any(need[: len(part)] == part[: len(need)] for need in problem.needs for part in self.removed)
        return gone or problem.path in self.reported

    def take_out(self, found: list[tuple[Location, Issue]]) -> bool:
        """Take the parts out that problems are of; whether there were any that can be."""
        self.reported |= {problem.path for _, problem in found}
        # Rules between fields go on where one of a single field is broken, and not always in a block's.
        of_blocks = (_location(problem.path) for location, problem in found if not location)
        locations = [location for location, _ in found if location]
        taken = map(self._take_out, [*locations, *(part for part in of_blocks if part[0] in self.named)])
        return any([*taken])

    def _take_out(self, location: Location) -> bool:
        name, *inside = [str(part) for part in location] or [""]
        first = inside[0] if inside else None
        part = self.data.get(name)
        if name == "name":
            changed = {**self.data, "name": "unnamed"}
        elif name == "source":
            changed = {**self.data, "source": self._source(part, first)}
        elif name in self.named and isinstance(part, Mapping) and first is not None:
            self.removed.add((name, first))
            kept = {key: value for key, value in part.items() if str(key) != first}
            check = part.get(first)
            if name == "checks" and first in self.built_in and len(inside) > 1 and isinstance(check, Mapping):
                kept[first] = {key: value for key, value in check.items() if key != inside[1]}
            changed = {**self.data, name: kept}
        elif name in self.named or name in INDEPENDENT or name == "time":
            self.removed |= {(name,), *([("columns", REST)] if name == "rest" else [])}
            # What a preset says of the time stands in for it; else it is missing.
            self.reported.add(name)
            changed = {key: value for key, value in self.data.items() if key != name}
        else:
            return False
        before, self.data = self.data, changed
        return before != changed

    def _source(self, source: Any, field: str | None) -> Any:
        if not isinstance(source, Mapping) or field in (None, "path"):
            # Which columns it has besides the declared ones is not known.
            self.removed |= {("source", "path"), ("columns",)}
            if isinstance(source, Mapping):
                return {**source, "path": ANYWHERE}
            self.reported.add("source.format")
            return {"path": ANYWHERE}
        if field in ("format", "options"):
            self.reported.add("source.format")
            return {key: value for key, value in source.items() if key not in ("format", "options")}
        return {key: value for key, value in source.items() if key != field}


def _location(path: str) -> Location:
    """Return the first parts of a field's path."""
    return tuple(re.split(r"[.\[]", path)[:3])


def _ordered(
    problems: list[Issue], data: Mapping[str, Any], of: type[Stream], named: Collection[str]
) -> list[Issue]:
    """Return the problems in the order of the fields, unknown ones first, and of the parts in the file."""
    fields = list(of.model_fields)

    def place(problem: Issue) -> tuple[int, int]:
        name, *inside = map(str, _location(problem.path))
        part = data.get(name)
        names = list(map(str, part)) if isinstance(part, Mapping) and name in named else []
        first = names.index(inside[0]) if inside and inside[0] in names else -1
        return (fields.index(name) if name in fields else -1), first

    return sorted(problems, key=place)
