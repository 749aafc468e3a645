"""What is wrong with a specification, as lines that a person can act on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

Location = tuple[int | str, ...]

_IDENTIFIER = "must be lower-case letters, digits and underscores, a letter first, at most 63"


@dataclass(frozen=True)
class Problem:
    """One broken rule.

    Attributes:
        path: the field, as `aggregate.traffic.levels[1]`; "" is the whole file.
        message: the rule and the value.
    """

    path: str
    message: str

    def __str__(self) -> str:
        text = self.message.replace("\n", "\n    ")
        return f"{self.path}: {text}" if self.path else text


class Problems(ValueError):
    """Several broken rules that one validator found; their paths are relative to its place."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


class SpecificationError(ValueError):
    """A stream file that cannot be used. Its text names the file and every problem, a line each.

    Attributes:
        name: the file.
        problems: what is wrong, in the order of the file's fields.
    """

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        self.name = name
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            text = f"{name}: {self.problems[0]}"
        else:
            lines = "".join(f"\n  {problem}" for problem in self.problems)
            text = f"{name}: {len(self.problems)} problems{lines}"
        super().__init__(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.problems)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `; nearest: x` for the known name most like this one, else `; known: ...`, else ""."""
    names = list(known)
    near = get_close_matches(name.lower(), names, n=1)
    if near:
        return f"; nearest: {near[0]}"
    return f"; known: {', '.join(names)}" if names else "; there are none"


def join(prefix: str, path: str) -> str:
    """Return the path of a field inside another one."""
    return prefix + path if not prefix or not path or path.startswith("[") else f"{prefix}.{path}"


def render(location: Location) -> str:
    """Return pydantic's location as a path: `aggregate.traffic.levels[1]`."""
    path = ""
    for part in location:
        if part != "[key]":  # pydantic's way to say that a mapping's key is at fault
            path = join(path, f"[{part}]" if isinstance(part, int) else part)
    return path


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[tuple[Location, Problem]]:
    """Return the problems that pydantic found in a model, each with the location it gave."""
    found: list[tuple[Location, Problem]] = []
    for detail in error.errors(include_url=False):
        location, path = detail["loc"], render(detail["loc"])
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, Problems):
            found += [
                (location, Problem(join(path, problem.path), problem.message)) for problem in cause.problems
            ]
        elif detail["type"] == "extra_forbidden":
            known = _known_fields(model, location[:-1])
            # "known:" with a long list helps less than the nearest name alone.
            near = _nearest_field(model, location)
            hint = f"; nearest: {near}" if near else f"; known: {', '.join(known)}"
            place = render(location[:-1])
            found.append((location, Problem(place, f"unknown field {str(location[-1])!r}{hint}")))
        else:
            found.append((location, Problem(path, _message(detail["type"], detail))))
    return found


def unknown_fields(error: ValidationError, model: type[BaseModel]) -> dict[Location, str | None]:
    """Return where a model found fields that it does not know, each with the known name most like it."""
    details = error.errors(include_url=False)
    places = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
    return {location: _nearest_field(model, location) for location in places}


def _nearest_field(model: type[BaseModel], location: Location) -> str | None:
    near = get_close_matches(str(location[-1]).lower(), _known_fields(model, location[:-1]), n=1)
    return near[0] if near else None


def _message(kind: str, detail: Any) -> str:
    cause = detail.get("ctx", {}).get("error")
    if cause is not None and kind == "value_error":
        return str(cause)
    if kind == "missing":
        return "is required"
    got = f"; got {_show(detail['input'])}"
    context = detail.get("ctx", {})
    rules = {
        "literal_error": f"must be one of {str(context.get('expected')).replace(' or ', ', ')}",
        "string_pattern_mismatch": _IDENTIFIER,
        "string_type": "must be text (in quotes, if it looks like something else)",
        "bool_type": "must be true or false",
        "int_type": "must be a whole number",
        "float_type": "must be a number",
        "finite_number": "must be a finite number",
        "tuple_type": "must be a list",
        "list_type": "must be a list",
        "dict_type": "must be a mapping",
        "model_type": "must be a mapping",
        "model_attributes_type": "must be a mapping",
        "too_short": f"must have at least {context.get('min_length')}",
        "string_too_short": "must not be empty",
    }
    bounds = {"greater_than_equal": ("at least", "ge"), "less_than_equal": ("at most", "le")}
    if kind in bounds:
        words, name = bounds[kind]
        return f"must be {words} {context[name]:g}{got}"
    return rules.get(kind, str(detail["msg"])) + got


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _known_fields(model: type[BaseModel], location: Location) -> list[str]:
    """Return the names that a file may give to the fields of the model at a location."""
    current: Any = model
    for part in location:
        if isinstance(current, type) and issubclass(current, BaseModel):
            by_name = {field.alias or name: field for name, field in current.model_fields.items()}
            current = _unwrap(by_name[str(part)].annotation)
        else:  # dict[str, X] or tuple[X, ...]
            arguments = get_args(current)
            current = _unwrap(arguments[1] if get_origin(current) is dict else arguments[0])
    if not (isinstance(current, type) and issubclass(current, BaseModel)):
        return []
    return [field.alias or name for name, field in current.model_fields.items()]


def _unwrap(annotation: Any) -> Any:
    """Return X for `X | None`."""
    choices = [choice for choice in get_args(annotation) if choice is not type(None)]
    return choices[0] if len(choices) == 1 and get_origin(annotation) not in (dict, tuple) else annotation
