"""Options of each format: their names, their valid values, and the fields that follow from them."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import permutations
from typing import Any

from transom.formats.json.record_paths import RECORDS
from transom.formats.record_format import BLANKS, CALL, EMBEDDED_FORMATS, RETURN, embedded_format
from transom.formats.regex_rules import PatternError, validate_regex
from transom.spec.errors import Issue, did_you_mean
from transom.spec.expressions import ExpressionError

APACHE_FIELDS = (
    "client", "ident", "user", "time", "request", "method", "path", "protocol", "status", "bytes",
    "referer", "agent",
)  # fmt: skip
"""The fields of the apache parser."""

MAX_HEADER_LINES = 1000
"""Maximum number of lines before a file's records."""

Rule = tuple[str, Callable[[Any], object]]
"""A description of an option's valid values, and a test for them."""


def _one_of(*names: str) -> Rule:
    return f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_character(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 1 and value not in "\r\n"


def _is_delimiter(value: Any) -> bool:
    short = _is_text(value) and len(value) <= 10 and not re.search("[\r\n]", value)
    return short and (value.strip(" ") == "" or " " not in value.strip(" "))


def _are_names(value: Any) -> bool:
    names = isinstance(value, list | tuple) and bool(value) and all(map(_is_text, value))
    return names and len(set(value)) == len(value)


def _is_count(value: Any, minimum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= MAX_HEADER_LINES


def _is_embedded(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and _is_text(value.get("field"))
        and value.get("format") in EMBEDDED_FORMATS
    )


_ASCII: Rule = (
    "one ASCII character, and no backslash",
    lambda value: _is_character(value) and (" " <= value < "\x7f" or value == "\t") and value != "\\",
)
GROUP = "\x1d"
"""The character before the second group of a line's pairs, in audit logs with names for numbers."""
_SEPARATORS: Rule = (
    "1 to 10 different ASCII characters, and no backslash",
    lambda value: (
        isinstance(value, str)
        and 1 <= len(value) == len(set(value)) <= 10
        and all(sign == GROUP or _ASCII[1](sign) for sign in value)
    ),
)
_RECORDS: Rule = ("the path of a list, such as Records[]", lambda v: _is_text(v) and RECORDS.fullmatch(v))
_PATTERN: Rule = ("a regular expression with named groups", lambda value: isinstance(value, str))
_NAMES: Rule = ("a list of different names", _are_names)
_EMBEDDED: Rule = (
    f"a mapping of field, a path, and format, one of {', '.join(EMBEDDED_FORMATS)}",
    _is_embedded,
)
_COMMENT: Rule = (
    "a text of 1 to 10 characters, such as #",
    lambda value: _is_text(value) and len(value) <= 10 and value.isprintable(),
)
_OPTIONS: dict[str, dict[str, Rule]] = {
    "apache": {"variant": _one_of("combined", "common")},
    "zeek": {"variant": _one_of("auto", "tsv", "json")},
    "csv": {
        "delimiter": (
            f"1 to 10 characters, with blanks only at the ends; or {BLANKS}, any number of blanks and tabs",
            _is_delimiter,
        ),
        "trim": ("true or false", lambda value: isinstance(value, bool)),
        "quote": ("one character", _is_character),
        "header": (
            "true, false, w3c, or the number of the line that names the columns, from 1 to 1000",
            lambda value: isinstance(value, bool) or value == "w3c" or _is_count(value, 1),
        ),
        "names": _NAMES,
        "skip": ("a number of lines from 0 to 1000", lambda value: _is_count(value, 0)),
        "comment": _COMMENT,
        "embedded": _EMBEDDED,
    },
    "json": {"records": _RECORDS, "embedded": _EMBEDDED},
    "regex": {"pattern": _PATTERN, "comment": _COMMENT, "embedded": _EMBEDDED},
    "kv": {
        "separator": _SEPARATORS,
        "assign": _ASCII,
        "quote": _ASCII,
        "lead": _NAMES,
        "comment": _COMMENT,
        "embedded": _EMBEDDED,
    },
    "syscalls": {"lead": _NAMES},
}


def option_problems(format: str, options: Mapping[str, Any]) -> list[Issue]:
    """Return the problems of the options of a format."""
    known = _OPTIONS[format]
    embedded = (
        embedded_format(options) if "embedded" in known and _is_embedded(options.get("embedded")) else None
    )
    outer = {name: value for name, value in options.items() if name != "embedded" or embedded is None}
    problems = _problems(format, outer, known)
    if embedded is not None:
        # An embedded text has no lines of its own.
        inner = _OPTIONS[embedded.format].items()
        known = {name: rule for name, rule in inner if name not in ("records", "comment", "embedded")}
        problems += [
            Issue(f"options.embedded{problem.path.removeprefix('options')}", problem.message)
            for problem in _problems(embedded.format, embedded.options, known)
        ]
        fields = fields_of(format, outer)
        if not problems and fields is not None and embedded.field not in fields:
            rule = f"{format} records have no field {embedded.field!r}{did_you_mean(embedded.field, fields)}"
            problems.append(Issue("options.embedded.field", rule))
    return problems


def _problems(format: str, options: Mapping[str, Any], known: Mapping[str, Rule]) -> list[Issue]:
    problems = []
    for name, value in options.items():
        if name not in known:
            hint = did_you_mean(name, known) if known else f"; {format} has none"
            problems.append(Issue("options", f"unknown option {name!r} of {format}{hint}"))
        elif not known[name][1](value):
            problems.append(Issue(f"options.{name}", f"must be {known[name][0]}; got {value!r}"))
    return problems or list(_together(format, options))


def _together(format: str, options: Mapping[str, Any]) -> Iterator[Issue]:
    """Yield the problems of combinations of valid options."""
    if format == "regex":
        yield from _pattern(options.get("pattern"))
    elif format == "kv":
        yield from _different_signs({"separator": " ", "assign": "=", "quote": '"'}, options)
    elif format == "syscalls":
        for name in options.get("lead", ()):
            if name in (CALL, RETURN):
                yield Issue("options.lead", f"{name} is a field that every line has; choose another")
    elif format == "csv":
        header = options.get("header", True)
        delimiter, quote = options.get("delimiter", ","), options.get("quote", '"')
        if header is False and "names" not in options:
            yield Issue("options.names", "is required where header is false")
        elif header is not False and "names" in options:
            rule = "needs header: false, else a line of the file names the columns"
            yield Issue("options.names", f"{rule}; got {options['names']!r}")
        elif header == "w3c" and {"skip", "comment"} & set(options):
            rule = "header: w3c excludes skip and comment, as its header lines begin with #"
            yield Issue("options", rule)
        elif options.get("trim") and (delimiter.strip(" ") in ("", BLANKS) or quote == " "):
            rule = f"needs a delimiter with more than blanks, and a quote that is no blank; got {delimiter!r}"
            yield Issue("options.trim", rule)
        elif delimiter != BLANKS and len(delimiter) > 1 and quote in delimiter:
            yield Issue("options.quote", f"must be no part of the delimiter {delimiter!r}; got {quote!r}")
        elif delimiter == BLANKS and quote in (" ", "\t"):
            rule = f"must be another character than those that {BLANKS} are; got {quote!r}"
            yield Issue("options.quote", rule)
        elif delimiter != BLANKS:
            yield from _different_signs({"delimiter": ",", "quote": '"'}, options)


def _different_signs(defaults: Mapping[str, str], options: Mapping[str, Any]) -> Iterator[Issue]:
    signs = {name: options.get(name, default) for name, default in defaults.items()}
    if any(one in other for one, other in permutations(signs.values(), 2)):
        got = ", ".join(f"{name} {sign!r}" for name, sign in signs.items())
        yield Issue("options", f"must be different characters; got {got}")


def _pattern(text: str | None) -> Iterator[Issue]:
    if text is None:
        yield Issue("options.pattern", "is required by regex: a regular expression with named groups")
        return
    try:
        if not validate_regex(text).groups:
            raise PatternError(0, "must name its fields by groups, as (?P<client>[^ ]+) does; it has none")
    except PatternError as error:
        yield Issue("options.pattern", str(ExpressionError(text, error.offset, error.message)))


@lru_cache(maxsize=256)
def _groups(pattern: str) -> tuple[str, ...] | None:
    """Return the groups of a pattern; None if it is invalid. Cached, as each column needs the result."""
    try:
        return validate_regex(pattern).groups
    except PatternError:
        return None


def fields_of(format: str | None, options: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the fields of a record of a format; None if only the files determine them."""
    if format == "apache":
        return APACHE_FIELDS
    if format == "csv":
        return tuple(options.get("names", ())) or None
    if format == "regex":
        return _groups(str(options.get("pattern")))
    return None


def has_field(path: str, format: str | None, options: Mapping[str, Any]) -> bool:
    """Return whether a record of a format, or the text embedded in it, may have a field at a path."""
    known = fields_of(format, options)
    if known is None or path in known:
        return True
    embedded = embedded_format(options)
    if embedded is None or not path.startswith(embedded.prefix):
        return False
    return has_field(path.removeprefix(embedded.prefix), embedded.format, embedded.options)
