"""Realistic patterns, and a small one with changes of it."""

from typing import Any

from tests.support.stream_factories import base

CAME_BACK = """
title: "{client} looked, and came back"
severity: high
key: [client]
within: 4 days
merge_gap: 1 hour
carry: [path]
steps:
  - {id: look, where: "path = '/'"}
  - {id: probe, where: "status = 404 and lower(path) like '%fckeditor%'", times: 5, within: 1 hour}
"""
SHELL = """
within: 1 day
steps:
  - {id: acc, where: "name = 'accept'"}
  - any_order:
      - {id: in, where: "name = 'dup' and ret = '0'", by: fd = acc.ret}
      - {id: out, where: "name = 'dup' and ret = '1'", by: fd = acc.ret}
      - {id: err, where: "name = 'dup' and ret = '2'", by: [fd = acc.ret]}
  - {id: exec, where: "name = 'execve'"}
"""
SCAN = """
within: 1 day
steps:
  - {id: refused, where: "state = 'REJ'", times: 20, distinct: port, within: 10 minutes}
  - {id: long, where: "duration > 3600", gap: {min: 0 seconds, max: 2 hours}, by: [dst]}
absent:
  - {where: "state = 'SF' and duration < 1", between: [refused, long]}
"""
BROKEN_IN = """
key: [client]
within: 2 hours
steps:
  - {id: failed, where: "status = 401", times: 10, within: 1 hour}
  - {id: success, where: "status = 200", gap: {max: 30 minutes}}
absent:
  - {where: "path = '/reset'", between: [failed, success]}
"""
POLICY = """
key: [client]
within: 1 day
steps:
  - {id: login, where: "name = 'ConsoleLogin' and state = 'no mfa'"}
  - {id: change, where: "name in ('PutUserPolicy', 'AttachUserPolicy')"}
"""
OWN = """
within: 1 hour
detector: transom.core.intervals.parse
columns: [path, status]
"""
ALL = {
    "came_back": CAME_BACK, "shell": SHELL, "scan": SCAN, "broken_in": BROKEN_IN, "policy": POLICY,
    "own": OWN,
}  # fmt: skip


def log() -> dict[str, Any]:
    """Return a stream that has the columns of all of these, and no block."""
    return {
        "name": "log",
        "source": {"path": "in/%Y-%m-%d.%H.json", "format": "json"},
        "columns": {
            "client": "client", "path": "path", "status": {"type": "integer"}, "name": "name", "fd": "fd",
            "ret": "ret", "dst": "dst", "port": {"type": "integer"}, "state": "state",
            "duration": {"type": "number", "resolution": 0.001},
        },
        "time": {"column": "at"},
        "key": ["dst"],
    }  # fmt: skip


def small(**changes: Any) -> dict[str, Any]:
    """Return the small stream with a pattern `x` of two steps, with changes: `steps__1__by="status"`."""
    data = base()
    pattern: dict[str, Any] = {
        "within": "1 day",
        "steps": [{"id": "a", "where": "status = 1"}, {"id": "b", "where": "ok"}],
    }
    data["patterns"] = {"x": pattern}
    for path, value in changes.items():
        *folders, last = path.split("__")
        place: Any = pattern
        for folder in folders:
            place = place[int(folder) if folder.isdigit() else folder]
        if value is ...:
            del place[last]
        else:
            place[int(last) if last.isdigit() else last] = value
    return data
