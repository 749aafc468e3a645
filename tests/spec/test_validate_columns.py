"""The exact text of every error of a stream's columns, its time and the fields that name columns."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

from typing import Any

import pytest

from tests.support.stream_factories import changed, refusal


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # columns
        ({"columns__Bad": "x"}, "columns.Bad: must be lower-case letters, digits and underscores, a letter first, at most 63; got 'Bad'"),
        ({"columns__hour": "x"}, "columns.hour: is a column that every stream has; choose another name"),
        ({"columns__host": "x"}, "source.path: {host} is also a declared column; choose another name"),
        ({"source__path": "{hour}.log"}, "source.path: {hour} is a column that every stream has; choose another name"),
        ({"columns__x": None}, "columns.x: must be a path or a mapping; null removes a preset's column, and there is none"),
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
        ({"time": {"column": "at", "from": "name"}}, "time.from: requires lines, which is missing"),
        ({"time": {"lines": "1 s"}}, "time.from: is required with lines: a time such as 2024-01-01T00:00, or name"),
        ({"time": {"lines": "0 s", "from": "name"}}, "time.lines: must be above 0; got 0 seconds"),
        ({"time": {"lines": "1 s", "from": "noon"}}, "time.from: must be name, or a time from 1970 to 2261 such as 2024-01-01T00:00; got 'noon'"),
        ({"time": {"lines": "1 s", "from": "1969-12-31T23:59"}}, "time.from: must be name, or a time from 1970 to 2261 such as 2024-01-01T00:00; got '1969-12-31T23:59'"),
        ({"time": {"lines": "1 s", "from": "name", "zone": "UTC"}}, "time.zone: requires column; times by lines have none"),
        ({"time": {"lines": "1 s", "from": "name", "format": "iso"}}, "time.format: requires column; times by lines have none"),
        ({"time": {"lines": "1 s", "from": "name"}, "source__path": "{host}.json"}, "time.from: name needs a time in source.path, such as %Y-%m-%d/%H; got '{host}.json'"),
        ({"time": {"column": "at", "on_duplicate_time": "first"}}, "time.on_duplicate_time: requires interval, which is missing"),
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
        ({"columns__x": {"is": "status", "from": "a", "missing": []}}, "2 problems\n  columns.x.from: requires a field of a record; the column is derived (`is`)\n  columns.x.missing: requires a field of a record; the column is derived (`is`)"),
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
    ],
)  # fmt: skip
def test_invalid_column_or_time_is_refused_with_path_rule_and_value(
    changes: dict[str, Any], message: str
) -> None:
    assert refusal(changed(**changes)) == f"app.yaml: {message}"
