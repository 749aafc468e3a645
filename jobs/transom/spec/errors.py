"""What is wrong with a specification, as lines that a person can act on."""

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
        needs: the parts of the file that the rule looks at beside the field itself, as ("columns", "user").
            Where one of them is wrong and left out, the problem says nothing.
    """

    path: str
    message: str
    needs: tuple[Location, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        text = self.message.replace("\n", "\n    ")
        return f"{self.path}: {text}" if self.path else text


class IssuesError(ValueError):
    """Several broken rules that one validator found; their paths are relative to its place."""

    def __init__(self, problems: Iterable[Issue]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


class SpecificationError(ValueError):
    """A stream file that cannot be used. Its text names the file and every problem, a line each.

    Attributes:
        name: the file, or files with commas between them.
        problems: what is wrong, in the order of the file's fields.
        files: each of several files; `name` alone, where there is one.
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
    """Return that a field names a column that is not known.

    Args:
        known: the columns that it may name.
        among: where the name stands, in words.
        needs: another part of the file that says which columns are known.
    """
    both = (("columns", name), needs) if needs else (("columns", name),)
    return Issue(path, f"no column {name!r}{among}{did_you_mean(name, known)}", both)


def of_expression(path: str, error: ExpressionError, *needs: Location) -> Issue:
    """Return that a field holds an expression that cannot be compiled.

    Args:
        needs: other parts of the file that say which columns are known.
    """
    unknown = () if error.unknown is None else (("columns", error.unknown), *needs)
    return Issue(path, str(error), unknown)


def join(prefix: str, path: str) -> str:
    """Return the path of a field inside another one."""
    return prefix + path if not prefix or not path or path.startswith("[") else f"{prefix}.{path}"


def item_path(several: Sequence[object], index: int) -> str:
    """Return where one of several values stands, below their field: a single one may be written bare."""
    return f"[{index}]" if len(several) > 1 else ""


def render(location: Location) -> str:
    """Return pydantic's location as a path: `aggregates.traffic.levels[1]`."""
    path = ""
    for part in location:
        if part != "[key]":  # pydantic's way to say that a mapping's key is at fault
            path = join(path, f"[{part}]" if isinstance(part, int) else part)
    return path


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[tuple[Location, Issue]]:
    """Return the problems that pydantic found in a model, each with the location it gave."""
    found: list[tuple[Location, Issue]] = []
    for detail in error.errors(include_url=False):
        location, path = detail["loc"], render(detail["loc"])
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, IssuesError):
            found += [
                (location, replace(problem, path=join(path, problem.path))) for problem in cause.problems
            ]
        elif detail["type"] == "extra_forbidden":
            known = _known_fields(model, location)
            # "known:" with a long list helps less than the nearest name alone.
            near = _nearest_field(model, location)
            hint = f"; nearest: {near}" if near else f"; known: {', '.join(known)}"
            place = render(location[:-1])
            found.append((location, Issue(place, f"unknown field {str(location[-1])!r}{hint}")))
        else:
            found.append((location, Issue(path, _message(detail["type"], detail))))
    return found


def unknown_fields(error: ValidationError, model: type[BaseModel]) -> dict[Location, str | None]:
    """Return where a model found fields that it does not know, each with the known name most like it."""
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
    """Return the names that a file may give to the fields of the model in which an unknown one was found.

    Args:
        location: of the unknown field. Where several models may stand, it is of those that do not know it.
    """
    *parts, unknown = location
    models: list[Any] = [model]
    for part in parts:
        models = [choice for one in models for inner in _inside(one, part) for choice in _choices(inner)]
    known = [_fields(one) for one in models if _is_model(one) and unknown not in _fields(one)]
    return list(dict.fromkeys(name for names in known for name in names))


def _inside(kind: Any, part: int | str) -> list[Any]:
    """Return the type of a part of a type: of a model's field, or of what a dict or a tuple holds."""
    if _is_model(kind):
        return [_fields(kind)[str(part)]] if part in _fields(kind) else []
    arguments = get_args(kind)
    return [arguments[1] if get_origin(kind) is dict else arguments[0]] if arguments else []


def _choices(annotation: Any) -> list[Any]:
    """Return the types that an annotation stands for, None left out."""
    if get_origin(annotation) is Annotated:
        return _choices(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [choice for one in get_args(annotation) for choice in _choices(one)]
    return [] if annotation is type(None) else [annotation]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    """Return the annotations of a model's fields, by the names that a file gives them."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}
