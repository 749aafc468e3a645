"""What each format leaves open: the options that it has, what they may be, and the fields that follow."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transom.expressions import ExpressionError
from transom.formats.layout import CALL, RETURN
from transom.formats.pattern import Pattern, PatternError, checked
from transom.stream.errors import Problem, nearest

APACHE_FIELDS = (
    "client", "ident", "user", "time", "request", "method", "path", "protocol", "status", "bytes",
    "referer", "agent",
)  # fmt: skip
"""The fields that the apache parser offers."""

Rule = tuple[str, Callable[[Any], bool]]
"""What an option must be, in words, and whether a value is that."""


def _one_of(*names: str) -> Rule:
    return f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names


def _different(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(name, str) and name for name in value)
        and len(set(value)) == len(value)
    )


def _ascii(value: Any) -> bool:
    return (
        isinstance(value, str)
        and len(value) == 1
        and (" " <= value < "\x7f" or value == "\t")
        and value != "\\"
    )


_CHARACTER: Rule = ("one character", lambda v: isinstance(v, str) and len(v) == 1 and v not in "\r\n")
_ASCII: Rule = ("one ASCII character, and no backslash", _ascii)
_NAMES: Rule = ("a list of different names", _different)
_RECORDS: Rule = (
    "the path of a list, such as Records[]",
    lambda value: isinstance(value, str) and re.fullmatch(r"[^.\[\]]+(\.[^.\[\]]+)*\[\]", value) is not None,
)
_OPTIONS: dict[str, dict[str, Rule]] = {
    "apache": {"variant": _one_of("combined", "common")},
    "zeek": {"variant": _one_of("auto", "tsv", "json")},
    "csv": {
        "delimiter": _CHARACTER,
        "quote": _CHARACTER,
        "header": ("true, false or w3c", lambda value: isinstance(value, bool) or value == "w3c"),
        "names": _NAMES,
    },
    "json": {"records": _RECORDS},
    "regex": {"pattern": ("a regular expression with named groups", lambda value: isinstance(value, str))},
    "kv": {"separator": _ASCII, "assign": _ASCII, "quote": _ASCII, "lead": _NAMES},
    "syscalls": {"lead": _NAMES},
}


def option_problems(format: str, options: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with the options of a format."""
    known = _OPTIONS[format]
    problems = []
    for name, value in options.items():
        if name not in known:
            hint = nearest(name, known) if known else f"; {format} has none"
            problems.append(Problem("options", f"unknown option {name!r} of {format}{hint}"))
        elif not known[name][1](value):
            problems.append(Problem(f"options.{name}", f"must be {known[name][0]}; got {value!r}"))
    if not problems:
        problems += _together(format, options)
    return problems


def _together(format: str, options: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with options each of which is what it must be."""
    if format == "csv" and options.get("header", True) is False and "names" not in options:
        return [Problem("options.names", "is required where header is false")]
    if format == "csv":
        return _different_signs({"delimiter": ",", "quote": '"', **options}, ("delimiter", "quote"))
    if format == "regex":
        return _pattern(options.get("pattern"))
    if format == "kv":
        signs = {"separator": " ", "assign": "=", "quote": '"', **options}
        return _different_signs(signs, ("separator", "assign", "quote"))
    if format == "syscalls":
        own = [name for name in options.get("lead", ()) if name in (CALL, RETURN)]
        return [
            Problem("options.lead", f"{name} is a field that every line has; choose another") for name in own
        ]
    return []


def _different_signs(options: Mapping[str, Any], names: Sequence[str]) -> list[Problem]:
    if len({options[name] for name in names}) == len(names):
        return []
    got = ", ".join(f"{name} {options[name]!r}" for name in names)
    return [Problem("options", f"must be different characters; got {got}")]


def _pattern(text: str | None) -> list[Problem]:
    if text is None:
        return [Problem("options.pattern", "is required by regex: a regular expression with named groups")]
    try:
        if not checked(text).groups:
            raise PatternError(0, "must name its fields by groups, as (?P<client>[^ ]+) does; it has none")
    except PatternError as error:
        return [Problem("options.pattern", str(ExpressionError(text, error.offset, error.message)))]
    return []


def pattern_of(options: Mapping[str, Any]) -> Pattern | None:
    """Return the pattern of regex; None where it is wrong."""
    try:
        return checked(str(options.get("pattern")))
    except PatternError:
        return None


def fields_of(format: str | None, options: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the fields that a record of a format has; None where only the files say so."""
    if format == "apache":
        return APACHE_FIELDS
    if format == "csv":
        return tuple(options.get("names", ())) or None
    if format == "regex":
        pattern = pattern_of(options)
        return pattern.groups if pattern else None
    return None
