"""Errors of a specification, as messages for people."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from transom.spec.expressions import ExpressionError

Location = tuple[int | str, ...]

_IDENTIFIER = "must be lower-case letters, digits and underscores, a letter first, at most 63"


@dataclass(frozen=True)
class Issue:
    """One broken rule.

    Attributes:
        path: the field, as `aggregates.traffic.levels[1]`; "" is the whole file.
        message: the rule and the value.
        needs: other parts of the file that the rule depends on, as ("columns", "user"). If one of them is
            invalid and left out, the problem is not reported.
    """

    path: str
    message: str
    needs: tuple[Location, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        text = self.message.replace("\n", "\n    ")
        return f"{self.path}: {text}" if self.path else text


class IssuesError(ValueError):
    """Several broken rules from one validator; their paths are relative to its place."""

    def __init__(self, problems: Iterable[Issue]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


class SpecificationError(ValueError):
    """An invalid stream file. Its text names the file and lists every problem, one per line.

    Attributes:
        name: the file, or several files separated by commas.
        problems: the problems, in the order of the file's fields.
        files: the files; `name` alone if there is one.
    """

    def __init__(self, name: str, problems: Sequence[Issue], files: Sequence[str] = ()) -> None:
        self.name = name
        self.files = tuple(files) or (name,)
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            text = f"{name}: {self.problems[0]}"
        else:
            lines = "".join(f"\n  {problem}" for problem in self.problems)
            text = f"{name}: {len(self.problems)} problems{lines}"
        super().__init__(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.problems, self.files)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; nearest: x` for the known name most like this one, else `; known: ...`, else ""."""
    names = list(known)
    near = get_close_matches(name.lower(), names, n=1)
    if near:
        return f"; nearest: {near[0]}"
    return f"; known: {', '.join(names)}" if names else "; there are none"


def find_duplicates(path: str, names: Iterable[str]) -> Iterator[Issue]:
    """Yield each name that a list has more than once."""
    for name, times in Counter(names).items():
        if times > 1:
            yield Issue(path, f"names {name!r} {times} times")


def no_column(path: str, name: str, known: Iterable[str], among: str = "", needs: Location = ()) -> Issue:
    """Return the issue that a field names an unknown column.

    Args:
        known: the columns that it may name.
        among: the place of the name, in words.
        needs: another part of the file that determines the known columns.
    """
    both = (("columns", name), needs) if needs else (("columns", name),)
    return Issue(path, f"no column {name!r}{among}{did_you_mean(name, known)}", both)


def of_expression(path: str, error: ExpressionError, *needs: Location) -> Issue:
    """Return the issue that the expression of a field cannot be compiled.

    Args:
        needs: other parts of the file that determine the known columns.
    """
    unknown = () if error.unknown is None else (("columns", error.unknown), *needs)
    return Issue(path, str(error), unknown)


def join(prefix: str, path: str) -> str:
    """Return the path of a field inside another one."""
    return prefix + path if not prefix or not path or path.startswith("[") else f"{prefix}.{path}"


def item_path(several: Sequence[object], index: int) -> str:
    """Return the path of one of several values below their field; "" for a single one, which may be written
    bare."""
    return f"[{index}]" if len(several) > 1 else ""


def render(location: Location) -> str:
    """Return pydantic's location as a path: `aggregates.traffic.levels[1]`."""
    path = ""
    for part in location:
        if part != "[key]":  # pydantic's marker for an invalid key of a mapping
            path = join(path, f"[{part}]" if isinstance(part, int) else part)
    return path


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[tuple[Location, Issue]]:
    """Return pydantic's problems of a model, each with its location."""
    issues: list[tuple[Location, Issue]] = []
    for detail in error.errors(include_url=False):
        location, path = detail["loc"], render(detail["loc"])
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, IssuesError):
            issues += [
                (location, replace(problem, path=join(path, problem.path))) for problem in cause.problems
            ]
        elif detail["type"] == "extra_forbidden":
            known = _known_fields(model, location)
            # The nearest name alone helps more than a long list.
            near = _nearest_field(model, location)
            hint = f"; nearest: {near}" if near else f"; known: {', '.join(known)}"
            place = render(location[:-1])
            issues.append((location, Issue(place, f"unknown field {str(location[-1])!r}{hint}")))
        else:
            issues.append((location, Issue(path, _message(detail["type"], detail))))
    return issues


def unknown_fields(error: ValidationError, model: type[BaseModel]) -> dict[Location, str | None]:
    """Return the locations of unknown fields, each with the nearest known name."""
    details = error.errors(include_url=False)
    places = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
    return {location: _nearest_field(model, location) for location in places}


def _nearest_field(model: type[BaseModel], location: Location) -> str | None:
    near = get_close_matches(str(location[-1]).lower(), _known_fields(model, location), n=1)
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
        bound = context[name]
        return f"must be {words} {bound if isinstance(bound, int) else f'{bound:g}'}{got}"
    return rules.get(kind, str(detail["msg"])) + got


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _known_fields(model: type[BaseModel], location: Location) -> list[str]:
    """Return the field names of the model with an unknown field, as a file writes them.

    Args:
        location: the location of the unknown field. If several models are possible, those that do not know it
            count.
    """
    *parts, unknown = location
    models: list[Any] = [model]
    for part in parts:
        models = [
            choice for candidate in models for inner in _inside(candidate, part) for choice in _choices(inner)
        ]
    known = [
        _fields(candidate)
        for candidate in models
        if _is_model(candidate) and unknown not in _fields(candidate)
    ]
    return list(dict.fromkeys(name for names in known for name in names))


def _inside(kind: Any, part: int | str) -> list[Any]:
    """Return the type of a part of a type: of a model's field, or of what a dict or a tuple holds."""
    if _is_model(kind):
        return [_fields(kind)[str(part)]] if part in _fields(kind) else []
    arguments = get_args(kind)
    return [arguments[1] if get_origin(kind) is dict else arguments[0]] if arguments else []


def _choices(annotation: Any) -> list[Any]:
    """Return the types of an annotation, without None."""
    if get_origin(annotation) is Annotated:
        return _choices(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [choice for argument in get_args(annotation) for choice in _choices(argument)]
    return [] if annotation is type(None) else [annotation]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    """Return the annotations of a model's fields, by the names that a file gives them."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}
