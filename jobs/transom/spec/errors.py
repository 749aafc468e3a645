"""Errors of a specification, as messages for users."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from transom.spec.expressions import ExpressionError

Location = tuple[int | str, ...]


@dataclass(frozen=True)
class Issue:
    """One broken rule.

    Attributes:
        path: the field, as `aggregates.traffic.levels[1]`; "" is the whole file.
        message: the rule and the value.
        needs: other parts of the file, as ("columns", "user"). If one is invalid, the issue is dropped.
    """

    path: str
    message: str
    needs: tuple[Location, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        text = self.message.replace("\n", "\n    ")
        return f"{self.path}: {text}" if self.path else text


class IssuesError(ValueError):
    """Broken rules of one validator; their paths are relative to its place."""

    def __init__(self, problems: Iterable[Issue]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


class SpecificationError(ValueError):
    """An invalid stream file. Its text names the file and lists every problem, one per line.

    Attributes:
        name: the file, or several separated by commas.
        files: the files, one by one.
        problems: the broken rules.
    """

    def __init__(self, name: str, problems: Sequence[Issue], files: Sequence[str] = ()) -> None:
        self.name = name
        self.files = tuple(files) or (name,)
        self.problems = tuple(problems)
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        several = f"{len(self.problems)} problems{lines}"
        super().__init__(f"{name}: {self.problems[0] if len(self.problems) == 1 else several}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.problems, self.files)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to a name; None if none is similar.

    >>> nearest("colums", ["columns", "checks"])
    'columns'
    """
    return next(iter(get_close_matches(name.lower(), known, n=1)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message: `; nearest: x` for a similar known name, else all known names."""
    names = list(known)
    if near := nearest(name, names):
        return f"; nearest: {near}"
    return f"; known: {', '.join(names)}" if names else "; there are none"


def find_duplicates(path: str, names: Iterable[str]) -> Iterator[Issue]:
    """Yield each name that a list has more than once."""
    for name, times in Counter(names).items():
        if times > 1:
            yield Issue(path, f"names {name!r} {times} times")


def no_column(path: str, name: str, known: Iterable[str], among: str = "", needs: Location = ()) -> Issue:
    """Return the issue of an unknown column `among` some others; `needs` determine the known columns."""
    both = (("columns", name), needs) if needs else (("columns", name),)
    return Issue(path, f"no column {name!r}{among}{did_you_mean(name, known)}", both)


def of_expression(path: str, error: ExpressionError, *needs: Location) -> Issue:
    """Return the issue that an expression cannot be compiled; `needs` determine the known columns."""
    return Issue(path, str(error), () if error.unknown is None else (("columns", error.unknown), *needs))


def join(prefix: str, path: str) -> str:
    """Return the path of a field inside another one.

    >>> join("aggregates.traffic", "levels"), join("levels", "[1]")
    ('aggregates.traffic.levels', 'levels[1]')
    """
    return prefix + path if not prefix or not path or path.startswith("[") else f"{prefix}.{path}"


def item_path(several: Sequence[object], index: int) -> str:
    """Return the path of a value in a list; "" for a single value, which may be written without a list."""
    return f"[{index}]" if len(several) > 1 else ""


def render(location: Iterable[int | str]) -> str:
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
        location, cause = detail["loc"], detail.get("ctx", {}).get("error")
        if detail["type"] == "extra_forbidden":
            issues.append((location, unknown_field(model, location)[0]))
        else:
            own = cause.problems if isinstance(cause, IssuesError) else [Issue("", _message(detail))]
            issues += [(location, replace(issue, path=join(render(location), issue.path))) for issue in own]
    return issues


def unknown_field(model: type[BaseModel], location: Location) -> tuple[Issue, str | None]:
    """Return the issue of an unknown field, and the nearest known name."""
    *place, name = location
    known = list(dict.fromkeys(_known_fields(model, location)))
    issue = Issue(render(place), f"unknown field {str(name)!r}{did_you_mean(str(name), known)}")
    return issue, nearest(str(name), known)


def _message(detail: Any) -> str:
    context, value = detail.get("ctx", {}), repr(detail["input"])
    if detail["type"] == "value_error":
        return str(context["error"])
    if detail["type"] == "missing":
        return "is required"
    bound = context.get("ge", context.get("le"))
    bound = f"{bound:g}" if isinstance(bound, float) else bound
    rules = {
        "literal_error": f"must be one of {str(context.get('expected')).replace(' or ', ', ')}",
        "string_pattern_mismatch": "must be lower-case letters, digits and underscores, a letter first, "
        "at most 63",
        "string_type": "must be text (in quotes, if it looks like something else)",
        "bool_type": "must be true or false",
        "int_type": "must be a whole number",
        "float_type": "must be a number",
        "finite_number": "must be a finite number",
        **dict.fromkeys(("tuple_type", "list_type"), "must be a list"),
        **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be a mapping"),
        "too_short": f"must have at least {context.get('min_length')}",
        "string_too_short": "must not be empty",
        "greater_than_equal": f"must be at least {bound}",
        "less_than_equal": f"must be at most {bound}",
    }
    shown = value if len(value) <= 80 else f"{value[:77]}..."
    return f"{rules.get(detail['type'], detail['msg'])}; got {shown}"


def _known_fields(kind: Any, location: Location) -> Iterator[str]:
    """Yield the fields, as a file writes them, of the models at an unknown field's place that do not have it.

    Args:
        kind: the type at the start of the location: a model, a union, a dict or a tuple.
    """
    part, *inside = location
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType, Annotated):
        for choice in arguments[:1] if origin is Annotated else arguments:
            yield from _known_fields(choice, location)
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
        if inside and part in fields:
            yield from _known_fields(fields[str(part)], tuple(inside))
        elif not inside and part not in fields:
            yield from fields
    elif inside and arguments:
        yield from _known_fields(arguments[1 if origin is dict else 0], tuple(inside))
