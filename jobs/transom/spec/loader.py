"""Load a stream from a file, and report all problems at once."""

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


def load(path: str | Path, model: type[Stream]) -> Stream:
    """Return the stream that a YAML file declares.

    Args:
        model: the type of a stream's file, as `stream_type` makes it.

    Raises:
        SpecificationError: the file cannot be read or breaks a rule; its text has every problem, each
            with the field's path, the rule and the value.
    """
    return parse(read_mapping(path), model, str(path))


def parse(data: Mapping[str, Any], model: type[Stream], name: str = "stream") -> Stream:
    """Return the stream that a mapping declares; `name` is for errors.

    Raises:
        SpecificationError: as `load`.
    """
    try:
        return model.model_validate(data)
    except ValidationError:
        cleaned, problems = _fix_misspelled_fields(data, model)
    # Rules between fields are only checked if each field is valid, and some only if other rules hold. Remove
    # the invalid parts and check again, to report all problems at once.
    built_in = built_in_of(model.features)
    rest = _PartialSpec(dict(cleaned), NAMED | {feature.name for feature in model.features}, built_in)
    while located := _problems_without(rest.data, model):
        problems += [
            _of_built_in(location, problem, built_in)
            for location, problem in located
            if not rest.explains(problem)
        ]
        if not rest.take_out(located):
            break
    raise SpecificationError(name, _ordered(problems, cleaned, model, rest.named))


def _problems_without(data: Mapping[str, Any], model: type[Stream]) -> list[tuple[Location, Issue]]:
    try:
        model.model_validate(data)
    except ValidationError as error:
        return problems_of(error, model)
    return []


def _fix_misspelled_fields(
    data: Mapping[str, Any], model: type[Stream]
) -> tuple[Mapping[str, Any], list[Issue]]:
    """Rename each unknown field to the nearest known one, if that is missing, else remove it; return the data
    and the problems.

    So a misspelled name is reported once, and not again by everything that depends on the field.
    """
    problems: list[Issue] = []
    while True:
        try:
            model.model_validate(data)
        except ValidationError as error:
            unknown = unknown_fields(error, model)
            issues = dict(problems_of(error, model))
        else:
            unknown = {}
        if not unknown:
            return data, problems
        data = deepcopy(dict(data))
        for location, near in unknown.items():
            problems.append(issues[location])
            place: Any = data
            for part in location[:-1]:
                place = place[part]
            value = place.pop(location[-1])
            if near is not None:
                place.setdefault(near, value)


def _of_built_in(location: Location, problem: Issue, built_in: Mapping[str, BuiltIn]) -> Issue:
    """Return the problem, or that the field is not one of a built-in check, whatever its value."""
    if len(location) > 2 and location[0] == "checks" and location[1] in built_in:
        name, field = str(location[1]), str(location[2])
        if field not in checks.allowed(built_in[name]):
            return Issue(f"checks.{name}.{field}", checks.only_allowed(name, built_in[name]))
    return problem


INDEPENDENT = frozenset(
    (
        "title", "description", "owner", "tags", "extra_fields", "unique", "key", "where", "waivers",
        "repair_window", "retention", "start", "until", "schedule", "catchup", "submit", "chunk",
    )
)  # fmt: skip
"""Fields that the validation of other fields does not depend on."""
NAMED = frozenset(("columns", "checks"))
"""Fields with named parts, each of which can be left out; features add theirs."""
ANYWHERE = "unnamed/*"
"""Replaces an invalid path."""


@dataclass
class _PartialSpec:
    """A stream's data without the invalid parts.

    Attributes:
        named: the fields with named parts.
        built_in: all built-in checks.
        reported: the fields with reported problems; each is checked once.
        removed: the removed parts.
    """

    data: dict[str, Any]
    named: frozenset[str]
    built_in: Mapping[str, BuiltIn]
    reported: set[str] = field(default_factory=set)
    removed: set[Location] = field(default_factory=set)

    def explains(self, problem: Issue) -> bool:
        """Return whether a problem only exists because a part was removed, or is already reported."""
        # Compare both ways: a removed part may contain the needed one, or be inside it.
        depends_on_removed = any(
            need[: len(part)] == part[: len(need)] for need in problem.needs for part in self.removed
        )
        return depends_on_removed or problem.path in self.reported

    def take_out(self, located: list[tuple[Location, Issue]]) -> bool:
        """Remove the parts with problems; return whether any could be removed."""
        self.reported |= {problem.path for _, problem in located}
        # Rules between fields report all their problems at once, those of a block not always.
        of_blocks = (_location(problem.path) for location, problem in located if not location)
        locations = [location for location, _ in located if location]
        removed = map(self._take_out, [*locations, *(part for part in of_blocks if part[0] in self.named)])
        return any([*removed])

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
            remaining = {key: value for key, value in part.items() if str(key) != first}
            check = part.get(first)
            if name == "checks" and first in self.built_in and len(inside) > 1 and isinstance(check, Mapping):
                remaining[first] = {key: value for key, value in check.items() if key != inside[1]}
            changed = {**self.data, name: remaining}
        elif name in self.named or name in INDEPENDENT or name == "time":
            self.removed |= {(name,), *([("columns", REST)] if name == "extra_fields" else [])}
            # A preset's time replaces it; else the time is missing.
            self.reported.add(name)
            changed = {key: value for key, value in self.data.items() if key != name}
        else:
            return False
        previous, self.data = self.data, changed
        return previous != changed

    def _source(self, source: Any, field: str | None) -> Any:
        if not isinstance(source, Mapping) or field in (None, "path"):
            # Its columns beside the declared ones are unknown.
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
    problems: list[Issue], data: Mapping[str, Any], model: type[Stream], named: Collection[str]
) -> list[Issue]:
    """Return the problems in the order of the fields, unknown ones first, and of the parts in the file."""
    fields = list(model.model_fields)

    def place(problem: Issue) -> tuple[int, int]:
        name, *inside = map(str, _location(problem.path))
        part = data.get(name)
        names = list(map(str, part)) if isinstance(part, Mapping) and name in named else []
        first = names.index(inside[0]) if inside and inside[0] in names else -1
        return (fields.index(name) if name in fields else -1), first

    return sorted(problems, key=place)
