"""The exact text of every error of a stream's source: its path, its format and the options of that."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

from typing import Any

import pytest

from tests.support.stream_factories import changed, refusal


def pattern(text: str) -> dict[str, Any]:
    return {"source__format": "regex", "source__options": {"pattern": text}}


def refused(rule: str, text: str, place: int) -> str:
    return f"source.options.pattern: {rule}\n    {text}\n    {' ' * place}^"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # source
        ({"source": "x"}, "source: must be a mapping; got 'x'"),
        ({"source__path": "a/../b"}, "source.path: must not climb with `..`; got 'a/../b'"),
        ({"source__path": "a/%H"}, "source.path: a time with its hour must also have its year; got 'a/%H'"),
        ({"source__path": 5}, "source.path: must be text (in quotes, if it looks like something else); got 5"),
        ({"source__zone": "Europe/Berln"}, "source.zone: must be an IANA time zone, such as Europe/Berlin; got 'Europe/Berln'; nearest: Europe/Berlin"),
        ({"source__zone": "+05:45"}, "source.zone: must be an IANA time zone, such as Europe/Berlin; got '+05:45'; an offset is no zone: name one that has it, such as Asia/Kathmandu"),
        ({"source__zone": "UTC+2"}, "source.zone: must be an IANA time zone, such as Europe/Berlin; got 'UTC+2'; an offset is no zone: name one that has it, such as Etc/GMT-2"),
        ({"source__zone": "-00:17"}, "source.zone: must be an IANA time zone, such as Europe/Berlin; got '-00:17'; an offset is no zone"),
        ({"source__zone": "../etc"}, "source.zone: must be an IANA time zone, such as Europe/Berlin; got '../etc'"),
        ({"source__format": "xml"}, "source.format: must be one of 'apache', 'zeek', 'csv', 'json', 'regex', 'kv', 'syscalls'; got 'xml'"),
        ({"source__format": ...}, "source.format: is required where no preset gives it"),
        ({"source__on_conflict": "drop"}, "source.on_conflict: must be one of 'hold', 'replace'; got 'drop'"),
        ({"source__connection": "s3"}, "source: unknown field 'connection'; known: path, zone, format, options, event_time_range, arrival_delay, expected_files, on_conflict, name_time, covers, equal_files"),
        ({"source__expected_files": 0}, "source.expected_files: must be at least 1; got 0"),
        ({"source__expected_files": "1"}, "source.expected_files: must be a whole number; got '1'"),
        ({"source__options": {"a": 1}}, "source.options: unknown option 'a' of json; known: records, embedded"),
        ({"source__options": {"embedded": "log"}}, "source.options.embedded: must be a mapping of field, a path, and format, one of json, regex, kv; got 'log'"),
        ({"source__options": {"embedded": {"field": "log", "format": "csv"}}}, "source.options.embedded: must be a mapping of field, a path, and format, one of json, regex, kv; got {'field': 'log', 'format': 'csv'}"),
        ({"source__options": {"embedded": {"field": "log", "format": "json", "records": "a[]"}}}, "source.options.embedded: unknown option 'records' of json; json has none"),
        ({"source__options": {"embedded": {"field": "log", "format": "kv", "comment": "#"}}}, "source.options.embedded: unknown option 'comment' of kv; known: separator, assign, quote, lead"),
        ({"source__format": "kv", "source__options": {"comment": "a longer one"}}, "source.options.comment: must be a text of 1 to 10 characters, such as #; got 'a longer one'"),
        ({"source__options": {"embedded": {"field": "log", "format": "regex"}}}, "source.options.embedded.pattern: is required by regex: a regular expression with named groups"),
        ({"source__options": {"embedded": {"field": "log", "format": "kv", "assign": "=="}}}, "source.options.embedded.assign: must be one ASCII character, and no backslash; got '=='"),
        ({"source__format": "regex", "source__options": {"pattern": "(?P<at>.*)", "embedded": {"field": "log", "format": "json"}}}, "source.options.embedded.field: regex records have no field 'log'; known: at"),
        ({"source__format": "csv", "source__options": {"delimeter": ","}}, "source.options: unknown option 'delimeter' of csv; nearest: delimiter"),
        ({"source__format": "csv", "source__options": {"delimiter": "a b"}}, "source.options.delimiter: must be 1 to 10 characters, with blanks only at the ends; or blanks, any number of blanks and tabs; got 'a b'"),
        ({"source__format": "csv", "source__options": {"delimiter": "|" * 11}}, "source.options.delimiter: must be 1 to 10 characters, with blanks only at the ends; or blanks, any number of blanks and tabs; got '|||||||||||'"),
        ({"source__format": "csv", "source__options": {"delimiter": "|'|", "quote": "'"}}, "source.options.quote: must be no part of the delimiter \"|'|\"; got \"'\""),
        ({"source__format": "csv", "source__options": {"delimiter": "  ", "trim": True}}, "source.options.trim: needs a delimiter with more than blanks, and a quote that is no blank; got '  '"),
        ({"source__format": "csv", "source__options": {"delimiter": "blanks", "quote": " "}}, "source.options.quote: must be another character than those that blanks are; got ' '"),
        ({"source__format": "csv", "source__options": {"header": "no"}}, "source.options.header: must be true, false, w3c, or the number of the line that names the columns, from 1 to 1000; got 'no'"),
        ({"source__format": "csv", "source__options": {"header": 0}}, "source.options.header: must be true, false, w3c, or the number of the line that names the columns, from 1 to 1000; got 0"),
        ({"source__format": "csv", "source__options": {"skip": -1}}, "source.options.skip: must be a number of lines from 0 to 1000; got -1"),
        ({"source__format": "csv", "source__options": {"skip": True}}, "source.options.skip: must be a number of lines from 0 to 1000; got True"),
        ({"source__format": "csv", "source__options": {"comment": ""}}, "source.options.comment: must be a text of 1 to 10 characters, such as #; got ''"),
        ({"source__format": "csv", "source__options": {"header": "w3c", "comment": "#"}}, "source.options: header: w3c excludes skip and comment, as its header lines begin with #"),
        ({"source__format": "csv", "source__options": {"header": False}}, "source.options.names: is required where header is false"),
        ({"source__format": "csv", "source__options": {"names": ["a"]}}, "source.options.names: needs header: false, else a line of the file names the columns; got ['a']"),
        ({"source__format": "csv", "source__options": {"header": 2, "names": ["a"]}}, "source.options.names: needs header: false, else a line of the file names the columns; got ['a']"),
        ({"source__format": "csv", "source__options": {"names": ["a", "a"]}}, "source.options.names: must be a list of different names; got ['a', 'a']"),
        ({"source__format": "zeek", "source__options": {"variant": "xml"}}, "source.options.variant: must be one of auto, tsv, json; got 'xml'"),
        ({"source__options": {"records": "Records"}}, "source.options.records: must be the path of a list, such as Records[]; got 'Records'"),
        ({"source__options": {"records": "a..b[]"}}, "source.options.records: must be the path of a list, such as Records[]; got 'a..b[]'"),
        ({"source__options": {"records": "a[][]"}}, "source.options.records: must be the path of a list, such as Records[]; got 'a[][]'"),
        ({"source__options": {"records": "a[].b"}}, "source.options.records: must be the path of a list, such as Records[]; got 'a[].b'"),
        ({"source__options": {"records": "a[].b[]"}, "columns__took__from": "$.b[].x"}, "columns.took.from: must lead to a value around the records of a[].b[]; got '$.b[].x'"),
        ({"source__options": {"records": "a[].b[]"}, "columns__took__from": "$.a[].b"}, "columns.took.from: must lead to a value around the records of a[].b[]; got '$.a[].b'"),
        ({"source__options": {"records": "a[].b[]"}, "columns__took__from": "a[].x"}, "columns.took.from: a path to a value around a record begins with $.: $.a[].x"),
        ({"source__format": "kv", "source__options": {"assign": "=="}}, "source.options.assign: must be one ASCII character, and no backslash; got '=='"),
        ({"source__format": "kv", "source__options": {"quote": "\\"}}, "source.options.quote: must be one ASCII character, and no backslash; got '\\\\'"),
        ({"source__format": "kv", "source__options": {"separator": "="}}, "source.options: must be different characters; got separator '=', assign '=', quote '\"'"),
        ({"source__format": "kv", "source__options": {"separator": " '", "quote": "'"}}, "source.options: must be different characters; got separator \" '\", assign '=', quote \"'\""),
        ({"source__format": "kv", "source__options": {"separator": ",,"}}, "source.options.separator: must be 1 to 10 different ASCII characters, and no backslash; got ',,'"),
        ({"source__format": "kv", "source__options": {"separator": ""}}, "source.options.separator: must be 1 to 10 different ASCII characters, and no backslash; got ''"),
        ({"source__format": "kv", "source__options": {"separator": "\x1c"}}, "source.options.separator: must be 1 to 10 different ASCII characters, and no backslash; got '\\x1c'"),
        ({"source__format": "csv", "source__options": {"delimiter": '"'}}, "source.options: must be different characters; got delimiter '\"', quote '\"'"),
        ({"source__format": "kv", "source__options": {"lead": "time"}}, "source.options.lead: must be a list of different names; got 'time'"),
        ({"source__format": "syscalls", "source__options": {"lead": ["time", "time"]}}, "source.options.lead: must be a list of different names; got ['time', 'time']"),
        ({"source__format": "syscalls", "source__options": {"lead": ["call"]}}, "source.options.lead: call is a field that every line has; choose another"),
        # regular expressions
        ({"source__format": "regex"}, "source.options.pattern: is required by regex: a regular expression with named groups"),
        ({"source__format": "regex", "source__options": {"pattern": 5}}, "source.options.pattern: must be a regular expression with named groups; got 5"),
        (pattern(r"(\S+) (?:\S+)"), refused("must name its fields by groups, as (?P<client>[^ ]+) does; it has none", r"(\S+) (?:\S+)", 0)),
        (pattern("(?P<a>.) (?P<a>.)"), refused("the group 'a' appears twice", "(?P<a>.) (?P<a>.)", 13)),
        (pattern("(?P<a>x"), refused("no regular expression: missing ), unterminated subpattern", "(?P<a>x", 0)),
        (pattern("(?P<a>x)[z-a]"), refused("no regular expression: bad character range z-a", "(?P<a>x)[z-a]", 9)),
        (pattern("(?P<a>x)(?=y)"), refused("a lookahead is not known here", "(?P<a>x)(?=y)", 8)),
        (pattern("(?<!y)(?P<a>x)"), refused("a lookbehind is not known here", "(?<!y)(?P<a>x)", 0)),
        (pattern(r"(?P<a>x)\1"), refused("a back reference is not known here", r"(?P<a>x)\1", 8)),
        (pattern("(?P<a>x)(?P=a)"), refused("a back reference is not known here", "(?P<a>x)(?P=a)", 8)),
        (pattern("(?P<a>x)(?>y)"), refused("an atomic group is not known here", "(?P<a>x)(?>y)", 8)),
        (pattern("(?P<a>x)y++"), refused("a possessive repeat is not known here", "(?P<a>x)y++", 10)),
        (pattern("(?P<a>x)?(?(a)y|z)"), refused("a conditional is not known here", "(?P<a>x)?(?(a)y|z)", 9)),
        (pattern("(?P<a>x)y{1001}"), refused("repeats a part at most 1000 times; got 1001", "(?P<a>x)y{1001}", 9)),
        (pattern("(?P<a>(?:y{40}){40})"), refused("repeats a part at most 1000 times; got 1600", "(?P<a>(?:y{40}){40})", 15)),
        (pattern(r"(?P<a>x)\Z"), refused(r"\Z is not known here", r"(?P<a>x)\Z", 8)),
        (pattern("(?P<a>x)(?x: y)"), refused("of the flags, i, m and s are known here; got x", "(?P<a>x)(?x: y)", 8)),
        ({**pattern("(?P<user>.) (?P<status>.)"), "columns": {"usr": "usr | name", "status": {"type": "integer"}}, "key": [], "aggregates": ...}, "2 problems\n  columns.usr.from: regex records have no field 'usr | name'; known: user, status\n  time.column: regex records have no field 'at'; known: user, status"),
        ({**pattern("(?P<date>.) (?P<user>.)"), "columns": {}, "key": [], "aggregates": ..., "time": {"column": ["date", "tiem"]}}, "time.column[1]: regex records have no field 'tiem'; known: date, user"),
    ],
)  # fmt: skip
def test_invalid_source_is_refused_with_path_rule_and_value(changes: dict[str, Any], message: str) -> None:
    assert refusal(changed(**changes)) == f"app.yaml: {message}"
