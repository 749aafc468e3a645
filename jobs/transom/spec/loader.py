"""Create a stream from the data of a file, and report all problems at once."""

import re
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from transom.formats.record_format import REST
from transom.spec import checks
from transom.spec.checks import BuiltIn
from transom.spec.errors import Issue, Location, SpecificationError, problems_of, unknown_field
from transom.spec.stream import Stream
from transom.spec.stream_fields import built_in_of


def parse(data: Mapping[str, Any], model: type[Stream], name: str = "stream") -> Stream:
    """Return the stream that a mapping declares.

    Args:
        data: the content of the file.
        model: the type of the stream file, from `stream_type`.
        name: the file, for errors.

    Raises:
        SpecificationError: it breaks a rule; its text has every problem: field, rule and value.
    """
    if isinstance(stream := _validate(data, model), Stream):
        return stream
    cleaned, problems = _fix_names(data, model)
    # Rules between fields are only checked if each field is valid, and some only if other rules hold. Remove
    # the invalid parts and check again, to report all problems at once.
    named = frozenset(("columns", "checks", *(feature.name for feature in model.features)))
    rest = _PartialSpec(dict(cleaned), named, built_in_of(model.features))
    while isinstance(error := _validate(rest.data, model), ValidationError):
        located = problems_of(error, model)
        problems += [rest.reworded(*problem) for problem in located if not rest.explains(problem[1])]
        if not rest.remove_invalid(located):
            break
    raise SpecificationError(name, _ordered(problems, cleaned, model, named))


def _validate(data: Mapping[str, Any], model: type[Stream]) -> Stream | ValidationError:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        return error


def _fix_names(data: Mapping[str, Any], model: type[Stream]) -> tuple[Mapping[str, Any], list[Issue]]:
    """Rename each unknown field to the nearest one, if that is missing, else remove it.

    So a misspelled name is reported once, not again for every part that depends on the field.
    """
    problems: list[Issue] = []
    while isinstance(error := _validate(data, model), ValidationError):
        details = error.errors(include_url=False)
        unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
        if not unknown:
            break
        data = deepcopy(dict(data))
        for location in unknown:
            problem, near = unknown_field(model, location)
            problems.append(problem)
            place: Any = data
            for part in location[:-1]:
                place = place[part]
            value = place.pop(location[-1])
            if near is not None:
                place.setdefault(near, value)
    return data, problems


@dataclass
class _PartialSpec:
    """A stream's data without the invalid parts.

    Attributes:
        named: the fields with named parts, each of which can be removed.
        built_in: all built-in checks.
        reported: the fields with reported problems; each is reported once.
        removed: the removed parts.
    """

    data: dict[str, Any]
    named: frozenset[str]
    built_in: Mapping[str, BuiltIn]
    reported: set[str] = field(default_factory=set)
    removed: set[Location] = field(default_factory=set)

    def reworded(self, location: Location, problem: Issue) -> Issue:
        """Return the problem, or that a built-in check has no such field, if that is the reason."""
        group, name, part, *_ = [*map(str, location), "", "", ""]
        default = self.built_in.get(name) if group == "checks" and part else None
        if default is None or part in checks.allowed(default):
            return problem
        return Issue(f"checks.{name}.{part}", checks.only_allowed(name, default))

    def explains(self, problem: Issue) -> bool:
        """Return whether a problem only exists because a part was removed, or is already reported."""
        # Compare both ways: a removed part may contain the needed one, or be inside it.
        both = ((need, part) for need in problem.needs for part in self.removed)
        removed = any(need[: len(part)] == part[: len(need)] for need, part in both)
        return removed or problem.path in self.reported

    def remove_invalid(self, located: list[tuple[Location, Issue]]) -> bool:
        """Remove the parts with problems; return whether any could be removed."""
        self.reported |= {problem.path for _, problem in located}
        # Rules between fields report all their problems at once, those of a block not always.
        of_blocks = (_location(problem.path) for location, problem in located if not location)
        locations = [location for location, _ in located if location]
        return any([*map(self._remove, [*locations, *(part for part in of_blocks if part[0] in self.named)])])

    def _remove(self, location: Location) -> bool:
        name, *inside = [str(part) for part in location]
        first = inside[0] if inside else None
        part, previous = self.data.get(name), self.data
        if name == "name":
            self.data = {**self.data, "name": "unnamed"}
        elif name == "source":
            self.data = {**self.data, "source": self._source(part, first)}
        elif name in self.named and isinstance(part, Mapping) and first is not None:
            self.removed.add((name, first))
            remaining = {key: value for key, value in part.items() if str(key) != first}
            check = part.get(first)
            if name == "checks" and first in self.built_in and len(inside) > 1 and isinstance(check, Mapping):
                remaining[first] = {key: value for key, value in check.items() if key != inside[1]}
            self.data = {**self.data, name: remaining}
        elif name != "preset":
            self.removed |= {(name,), *([("columns", REST)] if name == "extra_fields" else [])}
            # A preset's time replaces it; else the time is missing.
            self.reported.add(name)
            self.data = {key: value for key, value in self.data.items() if key != name}
        return previous != self.data

    def _source(self, source: Any, field: str | None) -> Any:
        """Return a source without an invalid field."""
        if not isinstance(source, Mapping) or field in (None, "path"):
            # The captures of the path, which are columns, are unknown.
            self.removed |= {("source", "path"), ("columns",)}
            if isinstance(source, Mapping):
                return {**source, "path": "unnamed/*"}
            self.reported.add("source.format")
            return {"path": "unnamed/*"}
        removed = ("format", "options") if field in ("format", "options") else (field,)
        self.reported |= {"source.format"} if "format" in removed else set()
        return {key: value for key, value in source.items() if key not in removed}


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
