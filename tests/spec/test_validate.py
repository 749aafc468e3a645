"""The exact text of every error of a stream's file."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pattern_factories import small
from tests.support.stream_factories import ACCEPT, BLOCK, changed, refusal
from transom.stream import SpecificationError, parse

TWO_LEVELS = {"aggregates__load__levels": "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR"}


def pattern(text: str) -> dict[str, Any]:
    return {"source__format": "regex", "source__options": {"pattern": text}}


def refused(rule: str, text: str, place: int) -> str:
    return f"source.options.pattern: {rule}\n    {text}\n    {' ' * place}^"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # one field
        ({"name": "Web"}, "name: must be lower-case letters, digits and underscores, a letter first, at most 63; got 'Web'"),
        ({"name": "web\n"}, "name: must be lower-case letters, digits and underscores, a letter first, at most 63; got 'web\\n'"),
        ({"name": ...}, "name: is required"),
        ({"name": 5}, "name: must be text (in quotes, if it looks like something else); got 5"),
        ({"title": ""}, "title: must not be empty; got ''"),
        ({"tags": "web"}, "tags: must be a list; got 'web'"),
        ({"aggregat": {}}, "unknown field 'aggregat'; nearest: aggregates"),
        ({"sketches": {}}, "unknown field 'sketches'; known: name, title, description, owner, tags, preset, source, columns, time, extra_fields, unique, key, where, patterns, aggregates, frames, fills, persistence, frequency, checks, waivers, repair_window, retention, start, until, schedule, catchup, submit, chunk"),
        ({"source__pth": "x"}, "source: unknown field 'pth'; nearest: path"),
        ({"source__event_time_range": {"befor": "1 day"}}, "source.event_time_range: unknown field 'befor'; nearest: before"),
        ({"columns__user": {"frm": "x"}}, "columns.user: unknown field 'frm'; nearest: from"),
        ({"columns__user": {"iz": "x"}}, "columns.user: unknown field 'iz'; known: from, is, type, unit, resolution, missing, format, zone"),
        ({"aggregates__load__measure": {}}, "aggregates.load: unknown field 'measure'; nearest: measures"),
        ({"waivers": [{**ACCEPT, "whi": "x"}]}, "waivers[0]: unknown field 'whi'; nearest: why"),
        ({"schedule": "yes"}, "schedule: must be true or false; got 'yes'"),
        ({"submit": "all"}, "submit: must be one of 'per_stage', 'single'; got 'all'"),
        ({"repair_window": 2}, "repair_window: must be a whole number and a unit, such as 5 minutes; got 2"),
        ({"repair_window": "90 minutes"}, "repair_window: must be whole hours; got 90 minutes"),
        ({"retention": "48 hours"}, "retention: must be whole hours, and no less than repair_window and the widest range together, 49 hours; got 2 days"),
        ({"chunk": "0 hours"}, "chunk: must be whole hours, at least one; got 0 seconds"),
        ({"chunk": "90 minutes"}, "chunk: must be whole hours, at least one; got 90 minutes"),
        ({"start": "2015-05-17T10:30"}, "start: must be on the hour, in UTC; got '2015-05-17T10:30'"),
        ({"start": "monday"}, "start: must be a time such as 2015-05-17T10:00; got 'monday'"),
        ({"start": 2015}, "start: must be a time such as 2015-05-17T10:00; got 2015"),
        ({"start": "2015-05-17T10:00", "until": "2015-05-17T10:00"}, "until: must be after start; got start 2015-05-17T10:00, until 2015-05-17T10:00"),
        ({"catchup": True}, "catchup: needs start, the first hour to catch up with"),
        ({"catchup": True, "schedule": False, "start": "2015-05-17T10:00"}, "catchup: needs schedule, which is false"),
        # source
        ({"source": "x"}, "source: must be a mapping; got 'x'"),
        ({"source__path": "a/../b"}, "source.path: must not climb with `..`; got 'a/../b'"),
        ({"source__path": "a/%H"}, "source.path: a time with its hour must also have its year; got 'a/%H'"),
        ({"source__path": 5}, "source.path: must be text (in quotes, if it looks like something else); got 5"),
        ({"source__zone": "Europe/Berln"}, "source.zone: must be an IANA time zone; got 'Europe/Berln'; nearest: Europe/Berlin"),
        ({"source__zone": "../etc"}, "source.zone: must be an IANA time zone; got '../etc'"),
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
        ({"source__options": {"embedded": {"field": "log", "format": "regex"}}}, "source.options.embedded.pattern: is required by regex: a regular expression with named groups"),
        ({"source__options": {"embedded": {"field": "log", "format": "kv", "assign": "=="}}}, "source.options.embedded.assign: must be one ASCII character, and no backslash; got '=='"),
        ({"source__format": "regex", "source__options": {"pattern": "(?P<at>.*)", "embedded": {"field": "log", "format": "json"}}}, "source.options.embedded.field: regex records have no field 'log'; known: at"),
        ({"source__format": "csv", "source__options": {"delimeter": ","}}, "source.options: unknown option 'delimeter' of csv; nearest: delimiter"),
        ({"source__format": "csv", "source__options": {"delimiter": ",,"}}, "source.options.delimiter: must be one character, or blanks, any number of blanks and tabs; got ',,'"),
        ({"source__format": "csv", "source__options": {"delimiter": "blanks", "quote": " "}}, "source.options.quote: must be another character than those that blanks are; got ' '"),
        ({"source__format": "csv", "source__options": {"header": "no"}}, "source.options.header: must be true, false, w3c, or the number of the line that names the columns, from 1 to 1000; got 'no'"),
        ({"source__format": "csv", "source__options": {"header": 0}}, "source.options.header: must be true, false, w3c, or the number of the line that names the columns, from 1 to 1000; got 0"),
        ({"source__format": "csv", "source__options": {"skip": -1}}, "source.options.skip: must be a number of lines from 0 to 1000; got -1"),
        ({"source__format": "csv", "source__options": {"skip": True}}, "source.options.skip: must be a number of lines from 0 to 1000; got True"),
        ({"source__format": "csv", "source__options": {"comment": ""}}, "source.options.comment: must be a text of 1 to 10 characters, such as #; got ''"),
        ({"source__format": "csv", "source__options": {"header": "w3c", "comment": "#"}}, "source.options: skip and comment do not go with header: w3c, whose header lines begin with #"),
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
        ({"source__format": "csv", "source__options": {"delimiter": '"'}}, "source.options: must be different characters; got delimiter '\"', quote '\"'"),
        ({"source__format": "kv", "source__options": {"lead": "time"}}, "source.options.lead: must be a list of different names; got 'time'"),
        ({"source__format": "syscalls", "source__options": {"lead": ["time", "time"]}}, "source.options.lead: must be a list of different names; got ['time', 'time']"),
        ({"source__format": "syscalls", "source__options": {"lead": ["call"]}}, "source.options.lead: call is a field that every line has; choose another"),
        # regular expressions
        ({"source__format": "regex"}, "source.options.pattern: is required by regex: a regular expression with named groups"),
        ({"source__format": "regex", "source__options": {"pattern": 5}}, "source.options.pattern: must be a regular expression with named groups; got 5"),
        (pattern(r"(\S+) (?:\S+)"), refused("must name its fields by groups, as (?P<client>[^ ]+) does; it has none", r"(\S+) (?:\S+)", 0)),
        (pattern("(?P<a>.) (?P<a>.)"), refused("the group 'a' is there twice", "(?P<a>.) (?P<a>.)", 13)),
        (pattern("(?P<a>x"), refused("no regular expression: missing ), unterminated subpattern", "(?P<a>x", 0)),
        (pattern("(?P<a>x)[z-a]"), refused("no regular expression: bad character range z-a", "(?P<a>x)[z-a]", 9)),
        (pattern("(?P<a>x)(?=y)"), refused("a look ahead is not known here", "(?P<a>x)(?=y)", 8)),
        (pattern("(?<!y)(?P<a>x)"), refused("a look behind is not known here", "(?<!y)(?P<a>x)", 0)),
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
        # columns
        ({"columns__Bad": "x"}, "columns.Bad: must be lower-case letters, digits and underscores, a letter first, at most 63; got 'Bad'"),
        ({"columns__hour": "x"}, "columns.hour: is a column that every stream has; choose another name"),
        ({"columns__host": "x"}, "source.path: {host} is also a declared column; choose another name"),
        ({"source__path": "{hour}.log"}, "source.path: {hour} is a column that every stream has; choose another name"),
        ({"columns__x": None}, "columns.x: must be a path or a mapping; null leaves out a preset's column, and there is none"),
        ({"columns__x": 5}, "columns.x: must be a mapping; got 5"),
        ({"columns__x": "a | "}, "columns.x.from: must be a field's path, or several with | between them; got 'a | '"),
        ({"columns__x": {"type": "float"}}, "columns.x.type: must be one of 'string', 'integer', 'number', 'boolean', 'timestamp'; got 'float'"),
        ({"columns__x": {"type": "number"}}, "columns.x.resolution: is required for a number, such as 0.001"),
        ({"columns__x": {"type": "integer", "resolution": 1}}, "columns.x.resolution: only a number has one; got 1 for type integer"),
        ({"columns__x": {"type": "number", "resolution": 0}}, "columns.x.resolution: must be a decimal from 1e-12 to 1e12, such as 0.001; got 0"),
        ({"columns__x": {"type": "number", "resolution": "fine"}}, "columns.x.resolution: must be a decimal from 1e-12 to 1e12, such as 0.001; got 'fine'"),
        ({"columns__x": {"type": "number", "resolution": "1e99"}}, "columns.x.resolution: must be a decimal from 1e-12 to 1e12, such as 0.001; got '1e99'"),
        ({"columns__x": {"type": "number", "resolution": True}}, "columns.x.resolution: must be a decimal from 1e-12 to 1e12, such as 0.001; got True"),
        ({"columns__x": {"missing": [-1]}}, "columns.x.missing[0]: must be text (in quotes, if it looks like something else); got -1"),
        ({"columns__x": {"format": "epoch"}}, "columns.x.format: only a timestamp has one; got 'epoch' for type string"),
        ({"columns__x": {"zone": "UTC"}}, "columns.x.zone: only a timestamp has one; got 'UTC' for type string"),
        ({"columns__x": {"type": "timestamp", "format": "epoch", "zone": "UTC"}}, "columns.x.zone: times since the epoch have none; got 'UTC'"),
        ({"source__format": "apache", "columns": {"a": "agnt", "user": "user", "took": {"from": "bytes", "type": "integer"}}, "time": {"column": "time"}}, "columns.a.from: apache records have no field 'agnt'; nearest: agent"),
        ({"source__format": "csv", "source__options": {"header": False, "names": ["user", "status", "ms", "ok", "when"]}}, "time.column: csv records have no field 'at'; known: user, status, ms, ok, when"),
        # time
        ({"time": ...}, "time: is required where no preset gives it"),
        ({"time": {}}, "time: must have either column or lines; it has neither"),
        ({"time": {"column": "at", "lines": "1 s"}}, "time: must have either column or lines; it has both"),
        ({"time": {"column": []}}, "time.column: must be a field's path, or a list of them; got []"),
        ({"time": {"column": 5}}, "time.column: must be a field's path, or a list of them; got 5"),
        ({"time": {"column": ["date", "a | "]}}, "time.column: must be a field's path, or several with | between them; got 'a | '"),
        ({"time": {"column": "at", "from": "name"}}, "time.from: goes with lines, which is missing"),
        ({"time": {"lines": "1 s"}}, "time.from: is required with lines: a time such as 2024-01-01T00:00, or name"),
        ({"time": {"lines": "0 s", "from": "name"}}, "time.lines: must not be nothing; got 0 seconds"),
        ({"time": {"lines": "1 s", "from": "noon"}}, "time.from: must be name, or a time from 1970 to 2261 such as 2024-01-01T00:00; got 'noon'"),
        ({"time": {"lines": "1 s", "from": "1969-12-31T23:59"}}, "time.from: must be name, or a time from 1970 to 2261 such as 2024-01-01T00:00; got '1969-12-31T23:59'"),
        ({"time": {"lines": "1 s", "from": "name", "zone": "UTC"}}, "time.zone: goes with column; times by lines have none"),
        ({"time": {"lines": "1 s", "from": "name", "format": "iso"}}, "time.format: goes with column; times by lines have none"),
        ({"time": {"lines": "1 s", "from": "name"}, "source__path": "{host}.json"}, "time.from: name needs a time in source.path, such as %Y-%m-%d/%H; got '{host}.json'"),
        ({"time": {"column": "at", "on_duplicate_time": "first"}}, "time.on_duplicate_time: goes with interval, which is missing"),
        ({"time": {"column": "at", "interval": "5 minutes"}}, "time.on_duplicate_time: is required with interval, one of first, last, keep"),
        ({"time": {"column": "at", "interval": "7 minutes", "on_duplicate_time": "last"}}, "time.interval: must divide one hour, as 5 minutes does; got 7 minutes"),
        ({"time": {"column": "at", "interval": "0 s", "on_duplicate_time": "last"}}, "time.interval: must divide one hour, as 5 minutes does; got 0 seconds"),
        ({"time": {"column": "at", "interval": "5 minutes", "on_duplicate_time": "mean"}}, "time.on_duplicate_time: must be one of 'first', 'last', 'keep'; got 'mean'"),
        ({"extra_fields": "maybe"}, "extra_fields: must be one of 'keep', 'drop'; got 'maybe'"),
        ({"extra_fields": "keep", "columns__rest": "x"}, "columns.rest: is the column of what `extra_fields: keep` keeps; choose another name"),
        ({"extra_fields": "keep", "source__path": "{rest}.log"}, "source.path: {rest} is the column of what `extra_fields: keep` keeps; choose another name"),
        ({"time": {"column": "at", "format": "unix"}}, "time.format: must be iso, epoch, epoch_ms, epoch_us, epoch_ns, epoch_or_iso, or a strptime format; got 'unix'"),
        ({"time": {"column": "at", "format": "%Y-%Q"}}, "time.format: unknown part %Q in the time format; got '%Y-%Q'"),
        ({"time": {"column": "at", "format": "%H:%M"}}, "time.format: must hold the year, else the time is not known; got '%H:%M'"),
        ({"time": {"column": "at", "format": "epoch", "zone": "UTC"}}, "time.zone: times since the epoch have none; got 'UTC'"),
        # derived columns
        ({"columns__x": {"is": "sttus + 1"}}, "columns.x.is: no column 'sttus'; nearest: status\n    sttus + 1\n    ^"),
        ({"columns__x": {"is": "status + user"}}, "columns.x.is: + takes an integer or a number; got a string\n    status + user\n             ^"),
        ({"columns__x": {"is": "status"}, "columns__y": {"is": "1 + x"}}, "columns.y.is: x is derived, too; a derived column reads others\n    1 + x\n        ^"),
        ({"columns__x": {"is": "1"}, "columns__xy": {"is": "1"}, "columns__z": {"is": "1 + xy"}}, "columns.z.is: xy is derived, too; a derived column reads others\n    1 + xy\n        ^"),
        ({"columns__x": {"is": "x + 1"}}, "columns.x.is: x is derived, too; a derived column reads others\n    x + 1\n    ^"),
        ({"columns__x": {"is": "status", "from": "a", "missing": []}}, "2 problems\n  columns.x.from: goes with what is read from a record; the column is derived (`is`)\n  columns.x.missing: goes with what is read from a record; the column is derived (`is`)"),
        ({"columns__x": {"is": "took", "type": "integer"}}, "columns.x.type: must be number, which `is` gives; got integer"),
        ({"columns__x": {"is": "took * 2"}}, "columns.x.resolution: is required for a number, such as 0.001"),
        ({"columns__x": {"is": "status", "type": "number"}}, "columns.x.resolution: is required for a number, such as 0.001"),
        ({"columns__x": {"is": "status", "resolution": 0.1}}, "columns.x.resolution: only a number has one; got 0.1 for type integer"),
        ({"columns__x": {"is": "user"}, "time": {"column": ["x", "at"]}}, "time.column: x is derived; a time comes from a record's own fields"),
        ({"columns__x": {"is": "status"}, "time": {"column": "at", "plus": "x"}}, "time.plus: x is derived; a time comes from a record's own fields"),
        # unique
        ({"unique": "user"}, "unique: must be a mapping; got 'user'"),
        ({"unique": []}, "unique.columns: must have at least 1; got []"),
        ({"unique": ["usr", "user"]}, "unique: no column 'usr'; nearest: user"),
        ({"unique": ["user", "user"]}, "unique: names 'user' more than once"),
        ({"unique": {"columns": ["user"], "prefr": "first"}}, "unique: unknown field 'prefr'; nearest: prefer"),
        ({"unique": {"columns": ["user"], "prefer": "last"}}, "unique.prefer: must be first, or longest and a column, as longest duration; got 'last'"),
        ({"unique": {"columns": ["user"], "prefer": "longest"}}, "unique.prefer: must be first, or longest and a column, as longest duration; got 'longest'"),
        ({"unique": {"columns": ["user"], "prefer": "longest tok"}}, "unique.prefer: no column 'tok'; nearest: took"),
        ({"unique": {"columns": ["user"], "prefer": "longest ok"}}, "unique.prefer: longest takes an integer or a number; ok is a boolean"),
        # key and where
        ({"key": "user"}, "key: must be a list; got 'user'"),
        ({"key": ["usr"]}, "key[0]: no column 'usr'; nearest: user"),
        ({"key": ["user", "user"]}, "key: names 'user' 2 times"),
        ({"columns__level": "x", "key": ["level"]}, "key[0]: level is a column that every report has; name the column otherwise"),
        ({"where": "status"}, "where: a condition must be a boolean; got an integer\n    status\n    ^"),
        ({"aggregates__load__where": "stats = 1"}, "aggregates.load.where: no column 'stats'; nearest: status\n    stats = 1\n    ^"),
        ({"aggregates__load__key": ["usr"]}, "aggregates.load.key[0]: no column 'usr'; nearest: user"),
        # measures
        ({"aggregates__load__measures": {}}, "aggregates.load.measures: must have at least 1; got {}"),
        ({"aggregates__load__measures": ...}, "aggregates.load.measures: is required"),
        ({"aggregates__load__measures__n": "sum took"}, "aggregates.load.measures.n: must be count, or sum, mean, min, max or distinct of a column, as sum(bytes); got 'sum took'"),
        ({"aggregates__load__measures__n": 5}, "aggregates.load.measures.n: must be count, or sum, mean, min, max or distinct of a column, as sum(bytes); got 5"),
        ({"aggregates__load__measures__n": "summ(took)"}, "aggregates.load.measures.n: unknown function 'summ' in 'summ(took)'; nearest: sum"),
        ({"aggregates__load__measures__n": "count(took)"}, "aggregates.load.measures.n: count counts records and takes no column; got 'count(took)'"),
        ({"aggregates__load__measures__n": "sum"}, "aggregates.load.measures.n: sum needs a column, as sum(bytes); got 'sum'"),
        ({"aggregates__load__measures__n": "sum(tok)"}, "aggregates.load.measures.n: no column 'tok' in 'sum(tok)'; nearest: took"),
        ({"aggregates__load__measures__n": "max(user)"}, "aggregates.load.measures.n: max takes an integer or a number; user is a string"),
        ({"aggregates__load__measures__n": "sum(ok)"}, "aggregates.load.measures.n: sum takes an integer or a number; ok is a boolean"),
        ({"aggregates__load__measures__n": "distinct"}, "aggregates.load.measures.n: distinct needs a column, as distinct(bytes); got 'distinct'"),
        ({"aggregates__load__measures__n": "distinct(hots)"}, "aggregates.load.measures.n: no column 'hots' in 'distinct(hots)'; nearest: host"),
        ({"aggregates__load__measures": {"users": "distinct(host)", "error_users": "count"}}, "aggregates.load.measures.error_users: error_users is a figure of users; choose another name"),
        ({"columns__hashes_host": "h", "aggregates__load__key": ["hashes_host"], "aggregates__load__measures__hosts": "distinct(host)"}, "aggregates.load.key: hashes_host is a column of the granules for host; choose another name"),
        ({"aggregates__load__measures__level": "count"}, "aggregates.load.measures.level: level is a column that every report has; choose another name"),
        ({"aggregates__load__measures__user": "count"}, "aggregates.load.measures.user: user is a column of the key; choose another name"),
        ({"aggregates__load__measures__max_slow": "count"}, "aggregates.load.measures.max_slow: max_slow is a figure of slow; choose another name"),
        ({"aggregates__load__measures": {"sum_slow": "count", "slow": "max(took)"}}, "aggregates.load.measures.sum_slow: sum_slow is a figure of slow; choose another name"),
        ({"columns__sum_slow": "x", "key": ["sum_slow"]}, "aggregates.load.key: sum_slow is a figure of slow; choose another name"),
        ({"columns__sum_took": {"type": "integer"}, "key": ["sum_took"]}, "aggregates.load.key: sum_took is a column of the granules for took; choose another name"),
        ({"columns__granule": "x", "key": ["granule"]}, "key[0]: granule is a column that every granule has; name the column otherwise"),
        # between blocks
        ({"aggregates__all": {**BLOCK, "measures": {"user": "count"}}}, "aggregates.all.measures.user: user is a column of the key of block load; choose another name"),
        ({"columns__sum_slow": "x", "aggregates__all": {**BLOCK, "key": ["sum_slow"]}}, "aggregates.all.key: sum_slow is a figure of slow of block load; choose another name"),
        ({"columns__min_took": "x", "aggregates__all": {**BLOCK, "key": ["min_took"]}}, "aggregates.all.key: min_took is a column of the granules for took of block load; choose another name"),
        ({"aggregates__all": {**BLOCK, "measures": {"n": "mean(status)"}}}, "aggregates.all.measures.n: n would be a number here and an integer in block load; choose another name"),
        ({"aggregates__all": {**BLOCK, "measures": {"slow": "max(status)"}}}, "aggregates.all.measures.slow: slow would be an integer here and a number in block load; choose another name"),
        ({"aggregates__all": {**BLOCK, "measures": {"sum_slow": "max(status)"}}}, "aggregates.all.measures.sum_slow: sum_slow would be an integer here and a number in block load; choose another name"),
        # levels
        ({"aggregates__load__fit": "7 minutes"}, "aggregates.load.fit.unit: must divide the slide of level 0 (range 1 hour, slide 5 minutes); got 7 minutes"),
        ({"aggregates__load__fit": "10 minutes"}, "aggregates.load.fit.unit: must divide the slide of level 0 (range 1 hour, slide 5 minutes); got 10 minutes"),
        ({"aggregates__load__levels": "RANGES 365 DAYS SLIDES 5 MINUTES", "aggregates__load__fit": "5 minutes"}, "aggregates.load.fit.unit: a window has at most 32768 units, level 0 (range 365 days, slide 5 minutes) has 105120"),
        ({"aggregates__load__measures": {"hosts": "distinct(host)"}, "aggregates__load__fit": "5 minutes"}, "aggregates.load.fit: no measure has a line: counts of distinct values have none"),
        ({"aggregates__load__measures": {"n": "count"}, "aggregates__load__aging": [1]}, "aggregates.load.aging: no measure has a mean: it takes sum, mean, min or max of a column"),
        ({"aggregates__load__fit": "0 seconds"}, "aggregates.load.fit.unit: must be whole seconds, at least one; got 0 seconds"),
        ({"aggregates__load__fit": {"unit": 5}}, "aggregates.load.fit.unit: must be a whole number and a unit, such as 5 minutes; got 5"),
        ({"aggregates__load__fit": {"unt": "5 minutes"}}, "aggregates.load.fit: unknown field 'unt'; nearest: unit"),
        ({"aggregates__load__fit": {"value": "median"}}, "aggregates.load.fit.value: must be one of 'mean', 'sum', 'min', 'max'; got 'median'"),
        ({"aggregates__load__aging": [1, 0.5]}, "aggregates.load.aging: must have a weight for each of 1 levels; got 2"),
        ({"aggregates__load__aging": []}, "aggregates.load.aging: must have a weight for each of 1 levels; got 0"),
        ({"aggregates__load__aging": [0]}, "aggregates.load.aging[0]: must be at least 0.001; got 0"),
        ({"aggregates__load__aging": [1001]}, "aggregates.load.aging[0]: must be at most 1000; got 1001"),
        ({"aggregates__load__aging": ["1"]}, "aggregates.load.aging[0]: must be a number; got '1'"),
        ({"aggregates__load__aging": [1, 1], "aggregates__load__levels": "RANGES 5 HOURS, 4 HOURS SLIDES 5 HOURS, 4 HOURS"}, "aggregates.load.aging: level 1 (range 5 hours, slide 5 hours): the slide must be a multiple of level 0's (range 4 hours, slide 4 hours)"),
        ({"aggregates__load__recurring": ["status"]}, "aggregates.load.recurring: needs at least two levels, as rings lie between them; got 1"),
        ({"aggregates__load__alert": "slo > 1"}, "aggregates.load.alert: no column 'slo'; nearest: slow\n    slo > 1\n    ^"),
        ({"aggregates__load__alert": "n + 1"}, "aggregates.load.alert: a condition must be a boolean; got an integer\n    n + 1\n    ^"),
        ({"aggregates__load__alert": "user > 1"}, "aggregates.load.alert: > takes parts of one type; got a string and an integer\n    user > 1\n           ^"),
        ({"aggregates__load__alert": {"when": "n > 1", "title": "busy"}}, "aggregates.load.alert: an alert with settings needs a name, as in many: {when: ...}; got when, title"),
        ({"aggregates__load__alert": {"when": "n > 1", "titel": "busy"}}, "aggregates.load.alert: an alert with settings needs a name, as in many: {when: ...}; got when, titel"),
        ({"aggregates__load__alert": {"when": "n > 1"}}, "aggregates.load.alert: an alert with settings needs a name, as in many: {when: ...}; got when"),
        ({"aggregates__load__alert": 5}, "aggregates.load.alert: must be a mapping; got 5"),
        ({"aggregates__load__alert": {"many": "stat > 1"}}, "aggregates.load.alert.many.when: no column 'stat'; known: level, window_start, window_end, count, user, n, slow, values_slow, sum_slow, mean_slow, min_slow, max_slow\n    stat > 1\n    ^"),
        ({"aggregates__load__alert": {"many": {"when": "n > 1", "level": 1}}}, "aggregates.load.alert.many.level: must be the number of a level, from 0 to 0; got 1"),
        ({"aggregates__load__alert": {"many": {"when": "n > 1", "level": -1}}}, "aggregates.load.alert.many.level: must be at least 0; got -1"),
        ({"aggregates__load__alert": {"many": {"when": "n > 1", "severity": "warning"}}}, "aggregates.load.alert.many.severity: must be one of 'high', 'medium', 'low'; got 'warning'"),
        ({"aggregates__load__alert": {"many": {"wen": "n > 1"}}}, "aggregates.load.alert.many: unknown field 'wen'; nearest: when"),
        ({"aggregates__load__alert": {"many": {"when": "n > 1", "title": "{usr} asks"}}}, "aggregates.load.alert.many.title: a title names columns of the key and of its condition; no column 'usr'; nearest: user"),
        ({"aggregates__load__alert": {"many": {"when": "n > 1", "title": "{user:>9}"}}}, "aggregates.load.alert.many.title: has no formats in braces; got '{user:>9}'"),
        ({"aggregates__load__alert": {"many": {"when": "n > 1", "title": "{user"}}}, "aggregates.load.alert.many.title: must be a text with names in braces; got '{user'"),
        ({"columns__alert": "x", "key": ["alert"], "aggregates__load__alert": "n > 1"}, "aggregates.load.alert: alert is a column that every alert has; name the column otherwise"),
        ({"aggregates__load__recurring": ["statu"], **TWO_LEVELS}, "aggregates.load.recurring[0]: no column 'statu'; nearest: status"),
        ({"aggregates__load__recurring": ["user"], **TWO_LEVELS}, "aggregates.load.recurring[0]: user is a column of the key; every item of a key has the same"),
        ({"aggregates__load__recurring": ["status", "status"], **TWO_LEVELS}, "aggregates.load.recurring: names 'status' 2 times"),
        ({"aggregates__load__recurring": "status", **TWO_LEVELS}, "aggregates.load.recurring: must be a list; got 'status'"),
        ({"aggregates__load__recurring": ["counts"], "columns__counts": "status", **TWO_LEVELS}, "aggregates.load.recurring: counts is a column that every recurring item has; name the column otherwise"),
        ({"aggregates__load__recurring": ["status"], "aggregates__load__levels": "RANGES 5 HOURS, 4 HOURS SLIDES 5 HOURS, 4 HOURS"}, "aggregates.load.recurring: level 1 (range 5 hours, slide 5 hours): the slide must be a multiple of level 0's (range 4 hours, slide 4 hours)"),
        ({"aggregates__load__levels": ...}, "aggregates.load.levels: is required"),
        ({"aggregates__load__levels": []}, "aggregates.load.levels: must have at least 1; got []"),
        ({"aggregates__load__levels": "1 hour"}, "aggregates.load.levels: must read like RANGES 6 HOURS, 1 HOUR SLIDES 1 HOUR, 5 MINUTES, or be a list; got '1 hour'"),
        ({"aggregates__load__levels": "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR"}, "aggregates.load.levels: must have as many slides as ranges; got 2 ranges, 1 slides"),
        ({"aggregates__load__levels": "RANGES 2 HOURS, 1 HUOR SLIDES 1 HOUR, 1 HOUR"}, "aggregates.load.levels[1]: unknown unit 'HUOR' in '1 HUOR'; nearest: hour"),
        ({"aggregates__load__levels": "RANGES 1 HOUR SLIDES 0 SECONDS"}, "aggregates.load.levels[0]: level 0 (range 1 hour, slide 0 seconds): the slide must be whole seconds, at least one"),
        ({"aggregates__load__levels": "RANGES 1 HOUR SLIDES 1500 MS"}, "aggregates.load.levels[0]: level 0 (range 1 hour, slide 1500 milliseconds): the slide must be whole seconds, at least one"),
        ({"aggregates__load__levels": "RANGES 6 HOURS, 1 HOUR SLIDES 4 HOURS, 1 HOUR"}, "aggregates.load.levels[0]: level 1 (range 6 hours, slide 4 hours): the range must be a whole multiple of the slide"),
        ({"aggregates__load__levels": "RANGES 0 HOURS SLIDES 1 HOUR"}, "aggregates.load.levels[0]: level 0 (range 0 seconds, slide 1 hour): the range must be a whole multiple of the slide"),
        ({"aggregates__load__levels": "RANGES 1 HOUR, 6 HOURS SLIDES 1 HOUR, 1 HOUR"}, "aggregates.load.levels[0]: level 1 (range 1 hour, slide 1 hour): the range must be longer than level 0's (range 6 hours, slide 1 hour)"),
        ({"aggregates__load__levels": "RANGES 1 HOUR, 1 HOUR SLIDES 1 HOUR, 1 HOUR"}, "aggregates.load.levels[0]: level 1 (range 1 hour, slide 1 hour): the range must be longer than level 0's (range 1 hour, slide 1 hour)"),
        ({"aggregates__load__levels": "RANGES 6 HOURS, 2 HOURS SLIDES 1 HOUR, 2 HOURS"}, "aggregates.load.levels[0]: level 1 (range 6 hours, slide 1 hour): the slide must not be shorter than level 0's (range 2 hours, slide 2 hours)"),
        # checks
        ({"checks": {"rejected_shar": {"at_most": 0.1}}}, "3 problems\n  checks.rejected_shar.at_most: only built-in checks have it; nearest: rejected_share\n  checks.rejected_shar.stage: is required, one of ingest, aggregates (or is it a built-in check; nearest: rejected_share)\n  checks.rejected_shar: must have either every or rows; it has neither"),
        ({"checks": {"rejected_share": {"at_most": 5}}}, "checks.rejected_share.at_most: must be at most 1; got 5"),
        ({"checks": {"rejected_share": {"at_most": "5%"}}}, "checks.rejected_share.at_most: must be a number; got '5%'"),
        ({"checks": {"rejected_share": {"rows": {"at_least": 1}}}}, "checks.rejected_share.rows: rejected_share is built in, only at_most, off, severity may be set"),
        ({"checks": {"hours_bounded": {"at_most": 0.1}}}, "checks.hours_bounded.at_most: hours_bounded is built in, only hours, off, severity may be set"),
        ({"checks": {"hours_bounded": {"hours": 0}}}, "checks.hours_bounded.hours: must be at least 1; got 0"),
        ({"checks": {"file_readable": {"at_most": 0.1}}}, "checks.file_readable.at_most: file_readable is built in, only off, severity may be set"),
        ({"checks": {"x": {"stage": "ingest", "every": "ok", "rows": {"at_least": 1}}}}, "checks.x: must have either every or rows; it has both"),
        ({"checks": {"x": {"stage": "ingest", "rows": {}}}}, "checks.x.rows: must have at_least, at_most or both"),
        ({"checks": {"x": {"stage": "ingest", "rows": {"at_least": 2, "at_most": 1}}}}, "checks.x.rows: at_least must not be above at_most; got at_least 2, at_most 1"),
        ({"checks": {"x": {"stage": "ingest", "rows": {"at_least": 1}, "share": 0.5}}}, "checks.x.share: goes with every, which is missing"),
        ({"checks": {"x": {"stage": "ingest", "every": "stats > 1"}}}, "checks.x.every: no column 'stats'; nearest: status\n    stats > 1\n    ^"),
        ({"checks": {"x": {"stage": "aggregates", "every": "status > 1"}}}, "checks.x.every: no column 'status'; known: level, window_start, window_end, count, user, n, slow, values_slow, sum_slow, mean_slow, min_slow, max_slow\n    status > 1\n    ^"),
        ({"checks": {"x": {"stage": "ingest", "block": "load", "every": "ok"}}}, "checks.x.block: ingest has no blocks; got 'load'"),
        ({"checks": {"x": {"stage": "aggregates", "block": "laod", "every": "ok"}}}, "checks.x.block: no block 'laod'; nearest: load"),
        ({"checks": {"x": {"stage": "ingest", "every": "ok", "severity": "fatal"}}}, "checks.x.severity: must be one of 'error', 'incomplete', 'warning'; got 'fatal'"),
        ({"aggregates": ..., "checks": {"x": {"stage": "aggregates", "every": "true"}}}, "checks.x.stage: the stream has no block of aggregates"),
        # waivers
        ({"waivers": [{**ACCEPT, "check": "rejected"}]}, "waivers[0].check: no check 'rejected'; nearest: rejected_share"),
        ({"waivers": [{**ACCEPT, "stage": "aggregates"}]}, "waivers[0].stage: rejected_share is a check of ingest; got aggregates"),
        ({"waivers": [{**ACCEPT, "observed": "1"}]}, "waivers[0].observed: must be a number; got '1'"),
        ({"waivers": [{**ACCEPT, "observed": True}]}, "waivers[0].observed: must be a number; got True"),
        ({"waivers": [{**ACCEPT, "who": ""}]}, "waivers[0].who: must not be empty; got ''"),
        ({"waivers": [{**ACCEPT, "hour": "2015-05-17T10:05"}]}, "waivers[0].hour: must be on the hour, in UTC; got '2015-05-17T10:05'"),
        # preset
        ({"preset": "apache/combned"}, "preset: no preset 'apache/combned'; nearest: apache/combined"),
        ({"preset": "../streams/web"}, "preset: no preset '../streams/web'; known: apache/combined, syscalls/trace, zeek/conn"),
    ],
)  # fmt: skip
def test_invalid_stream_is_refused_with_path_rule_and_value(changes: dict[str, Any], message: str) -> None:
    assert refusal(changed(**changes)) == f"app.yaml: {message}"


def test_all_errors_are_reported_at_once_in_the_order_of_the_fields() -> None:
    data = changed(
        chunk="90 minutes",
        repair_window="soon",
        colour="red",
        aggregates__load__levels="RANGES 1 HOUR, 6 HOURS SLIDES 1 HOUR, 4 HOURS",
        aggregates__other={"measures": {"n": "sum(tok)"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"},
        key=["usr"],
    )
    assert refusal(data) == (
        "app.yaml: 8 problems\n"
        "  unknown field 'colour'; nearest: columns\n"
        "  key[0]: no column 'usr'; nearest: user\n"
        "  aggregates.load.levels[0]: level 1 (range 1 hour, slide 1 hour): the range must be longer than "
        "level 0's (range 6 hours, slide 4 hours)\n"
        "  aggregates.load.levels[0]: level 1 (range 1 hour, slide 1 hour): the slide must not be shorter "
        "than level 0's (range 6 hours, slide 4 hours)\n"
        "  aggregates.load.levels[1]: level 0 (range 6 hours, slide 4 hours): the range must be a whole "
        "multiple of the slide\n"
        "  aggregates.other.measures.n: no column 'tok' in 'sum(tok)'; nearest: took\n"
        "  repair_window: must be a whole number and a unit, such as 5 minutes; got 'soon'\n"
        "  chunk: must be whole hours, at least one; got 90 minutes"
    )


def test_invalid_column_is_not_also_reported_as_missing() -> None:
    assert refusal(changed(columns__took={"type": "number"})) == (
        "app.yaml: columns.took.resolution: is required for a number, such as 0.001"
    )


def test_misspelled_field_is_reported_without_its_consequences() -> None:
    data = changed(key=["user"], where="status >= 500", unique=["user", "usr"])
    data["colums"] = data.pop("columns")
    data["source"]["fromat"] = data["source"].pop("format")
    assert refusal(data) == (
        "app.yaml: 3 problems\n"
        "  unknown field 'colums'; nearest: columns\n"
        "  source: unknown field 'fromat'; nearest: format\n"
        "  unique: no column 'usr'; nearest: user"
    )


def test_missing_fields_are_reported_with_invalid_ones() -> None:
    data = changed(
        name="Web", source__format="xml", source__options={"a": 1}, time=..., extra_fields="maybe",
        columns__took={"type": "float"}, key=["usr"], aggregates__load__measures={"n": "max(took)"},
        checks={
            "keys_not_null": {"at_most": 100, "rows": {"at_least": 1}},
            "x": {"stage": "ingest", "every": "statu > 1"},
        },
    )  # fmt: skip
    assert refusal(data) == (
        "app.yaml: 9 problems\n"
        "  name: must be lower-case letters, digits and underscores, a letter first, at most 63; got 'Web'\n"
        "  source.format: must be one of 'apache', 'zeek', 'csv', 'json', 'regex', 'kv', 'syscalls'; got 'xml'\n"
        "  columns.took.type: must be one of 'string', 'integer', 'number', 'boolean', 'timestamp'; got "
        "'float'\n"
        "  time: is required where no preset gives it\n"
        "  extra_fields: must be one of 'keep', 'drop'; got 'maybe'\n"
        "  key[0]: no column 'usr'; nearest: user\n"
        "  checks.keys_not_null.at_most: keys_not_null is built in, only off, severity may be set\n"
        "  checks.keys_not_null.rows: keys_not_null is built in, only off, severity may be set\n"
        "  checks.x.every: no column 'statu'; nearest: status\n    statu > 1\n    ^"
    )


def test_out_of_range_value_of_an_unknown_check_field_is_refused() -> None:
    assert refusal(changed(checks={"keys_not_null": {"at_most": 100}})) == (
        "app.yaml: checks.keys_not_null.at_most: keys_not_null is built in, only off, severity may be set"
    )


def test_block_with_an_invalid_key_does_not_hide_errors_of_its_checks() -> None:
    data = changed(
        aggregates__load__key=["usr"], checks={"x": {"stage": "aggregates", "every": "n > 1", "share": 2}}
    )
    assert refusal(data) == (
        "app.yaml: 2 problems\n"
        "  aggregates.load.key[0]: no column 'usr'; nearest: user\n"
        "  checks.x.share: must be at most 1; got 2"
    )
    data["checks"]["x"]["share"] = 1
    assert refusal(data) == "app.yaml: aggregates.load.key[0]: no column 'usr'; nearest: user"


def test_error_survives_pickling() -> None:
    with pytest.raises(SpecificationError) as error:
        parse(changed(name="X"), "app.yaml")
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_check_over_several_blocks_must_name_its_block() -> None:
    data = changed(
        aggregates__other={"measures": {"n": "count"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"},
        checks={"x": {"stage": "aggregates", "every": "n > 1"}},
    )
    assert refusal(data) == (
        "app.yaml: checks.x.block: is required where there are several; known: load, other"
    )


json_like = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=6) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
places = st.sampled_from(
    ["name", "source", "source__path", "source__format", "source__options", "source__event_time_range", "columns",
     "columns__user", "columns__took", "time", "time__format", "key", "where", "aggregates",
     "aggregates__load", "aggregates__load__levels", "aggregates__load__measures", "aggregates__load__key",
     "unique", "unique__prefer", "columns__took__is", "patterns", "patterns__x", "patterns__x__steps",
     "patterns__x__absent", "patterns__x__within", "patterns__x__carry", "checks", "waivers", "repair_window", "chunk", "preset", "start", "until", "tags"]
)  # fmt: skip


@given(st.dictionaries(places, json_like, max_size=3))
def test_any_file_is_a_stream_or_a_specification_error(changes: dict[str, Any]) -> None:
    data: Any = small()
    for path, value in changes.items():
        *folders, last = path.split("__")
        place = data
        for folder in folders:
            place = place.get(folder) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[last] = value
    try:
        stream = parse(data, "app.yaml")
    except SpecificationError as error:
        refused = str(error)
    else:
        assert stream.layout()
        return
    assert refused.startswith("app.yaml: ")
