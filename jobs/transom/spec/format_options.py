"""Options of each format: their names, their valid values, and the fields that follow from them."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from transom.formats.json.record_paths import RECORDS
from transom.formats.record_format import BLANKS, CALL, EMBEDDED_FORMATS, RETURN, embedded_format
from transom.formats.regex_rules import CheckedRegex, PatternError, validate_regex
from transom.spec.errors import Issue, did_you_mean
from transom.spec.expressions import ExpressionError

APACHE_FIELDS = (
    "client", "ident", "user", "time", "request", "method", "path", "protocol", "status", "bytes",
    "referer", "agent",
)  # fmt: skip
"""The fields of the apache parser."""

MOST_HEADER_LINES = 1000
"""Maximum number of lines before a file's records."""

Rule = tuple[str, Callable[[Any], bool]]
"""A description of an option's valid values, and a test for them."""


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


def _count(value: Any, minimum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= MOST_HEADER_LINES


_CHARACTER: Rule = ("one character", lambda v: isinstance(v, str) and len(v) == 1 and v not in "\r\n")
_DELIMITER: Rule = (
    f"one character, or {BLANKS}, any number of blanks and tabs",
    lambda value: value == BLANKS or _CHARACTER[1](value),
)
_ASCII: Rule = ("one ASCII character, and no backslash", _ascii)
_NAMES: Rule = ("a list of different names", _different)
_RECORDS: Rule = (
    "the path of a list, such as Records[]",
    lambda value: isinstance(value, str) and RECORDS.fullmatch(value) is not None,
)
_EMBEDDED: Rule = (
    f"a mapping of field, a path, and format, one of {', '.join(EMBEDDED_FORMATS)}",
    lambda value: (
        isinstance(value, Mapping)
        and isinstance(value.get("field"), str)
        and bool(value["field"])
        and value.get("format") in EMBEDDED_FORMATS
    ),
)
_OF_LINES = ("records", "embedded")
"""Options that an embedded text does not have."""
_OPTIONS: dict[str, dict[str, Rule]] = {
    "apache": {"variant": _one_of("combined", "common")},
    "zeek": {"variant": _one_of("auto", "tsv", "json")},
    "csv": {
        "delimiter": _DELIMITER,
        "quote": _CHARACTER,
        "header": (
            "true, false, w3c, or the number of the line that names the columns, from 1 to 1000",
            lambda value: isinstance(value, bool) or value == "w3c" or _count(value, 1),
        ),
        "names": _NAMES,
        "skip": ("a number of lines from 0 to 1000", lambda value: _count(value, 0)),
        "comment": (
            "a text of 1 to 10 characters, such as #",
            lambda value: isinstance(value, str) and 0 < len(value) <= 10 and value.isprintable(),
        ),
        "embedded": _EMBEDDED,
    },
    "json": {"records": _RECORDS, "embedded": _EMBEDDED},
    "regex": {
        "pattern": ("a regular expression with named groups", lambda value: isinstance(value, str)),
        "embedded": _EMBEDDED,
    },
    "kv": {"separator": _ASCII, "assign": _ASCII, "quote": _ASCII, "lead": _NAMES, "embedded": _EMBEDDED},
    "syscalls": {"lead": _NAMES},
}


def option_problems(format: str, options: Mapping[str, Any]) -> list[Issue]:
    """Return the problems of the options of a format."""
    embedded = embedded_format(options) if "embedded" in _OPTIONS[format] and _is_embedded(options) else None
    outer = {name: value for name, value in options.items() if name != "embedded" or embedded is None}
    problems = _problems(format, outer, _OPTIONS[format])
    if embedded is not None:
        known = {name: rule for name, rule in _OPTIONS[embedded.format].items() if name not in _OF_LINES}
        inner = _problems(embedded.format, embedded.options, known)
        problems += [
            Issue(f"options.embedded{problem.path.removeprefix('options')}", problem.message)
            for problem in inner
        ]
        fields = fields_of(format, outer)
        if not problems and fields is not None and embedded.field not in fields:
            rule = f"{format} records have no field {embedded.field!r}{did_you_mean(embedded.field, fields)}"
            problems.append(Issue("options.embedded.field", rule))
    return problems


def _is_embedded(options: Mapping[str, Any]) -> bool:
    return "embedded" in options and _EMBEDDED[1](options["embedded"])


def _problems(format: str, options: Mapping[str, Any], known: Mapping[str, Rule]) -> list[Issue]:
    problems = []
    for name, value in options.items():
        if name not in known:
            hint = did_you_mean(name, known) if known else f"; {format} has none"
            problems.append(Issue("options", f"unknown option {name!r} of {format}{hint}"))
        elif not known[name][1](value):
            problems.append(Issue(f"options.{name}", f"must be {known[name][0]}; got {value!r}"))
    if not problems:
        problems += _together(format, options)
    return problems


def _together(format: str, options: Mapping[str, Any]) -> list[Issue]:
    """Return the problems of combinations of options that are valid by themselves."""
    if format == "csv" and options.get("header", True) is False and "names" not in options:
        return [Issue("options.names", "is required where header is false")]
    if format == "csv" and options.get("header", True) is not False and "names" in options:
        rule = f"needs header: false, else a line of the file names the columns; got {options['names']!r}"
        return [Issue("options.names", rule)]
    if format == "csv" and options.get("header") == "w3c" and {"skip", "comment"} & set(options):
        rule = "skip and comment do not go with header: w3c, whose header lines begin with #"
        return [Issue("options", rule)]
    if format == "csv" and options.get("delimiter") == BLANKS and options.get("quote") in (" ", "\t"):
        rule = f"must be another character than those that {BLANKS} are; got {options['quote']!r}"
        return [Issue("options.quote", rule)]
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
            Issue("options.lead", f"{name} is a field that every line has; choose another") for name in own
        ]
    return []


def _different_signs(options: Mapping[str, Any], names: Sequence[str]) -> list[Issue]:
    if len({options[name] for name in names}) == len(names):
        return []
    got = ", ".join(f"{name} {options[name]!r}" for name in names)
    return [Issue("options", f"must be different characters; got {got}")]


def _pattern(text: str | None) -> list[Issue]:
    if text is None:
        return [Issue("options.pattern", "is required by regex: a regular expression with named groups")]
    try:
        if not validate_regex(text).groups:
            raise PatternError(0, "must name its fields by groups, as (?P<client>[^ ]+) does; it has none")
    except PatternError as error:
        return [Issue("options.pattern", str(ExpressionError(text, error.offset, error.message)))]
    return []


def pattern_of(options: Mapping[str, Any]) -> CheckedRegex | None:
    """Return the pattern of regex; None where it is wrong."""
    return _usable(str(options.get("pattern")))


@lru_cache(maxsize=256)
def _usable(text: str) -> CheckedRegex | None:
    """Return a checked pattern, or None. Also caches invalid ones, as each column needs the result."""
    try:
        return validate_regex(text)
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


def has_field(path: str, format: str | None, options: Mapping[str, Any]) -> bool:
    """Return whether a record of a format, or the text in it, may have a path."""
    known = fields_of(format, options)
    if known is None or path in known:
        return True
    embedded = embedded_format(options)
    if embedded is None or not path.startswith(embedded.prefix):
        return False
    return has_field(path.removeprefix(embedded.prefix), embedded.format, embedded.options)
