"""A stream file for each format, with the events of a log."""

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from transom.formats.read_file import Chunk, FileSummary, read_file
from transom.stream import parse

NGINX = """
source:
  format: regex
  options:
    pattern: >-
      (?P<client>\\S+) \\S+ (?P<user>\\S+) \\[(?P<time>[^\\]]+)\\] "(?P<method>[A-Z]+) (?P<path>\\S+) [^"]*"
      (?P<status>\\d{3}) (?P<bytes>\\d+)(?: rt=(?P<took>[\\d.]+|-))?
columns:
  client: client
  user: {missing: ["-"]}
  status: {type: integer}
  took: {type: number, resolution: 0.001, unit: s, missing: ["-"]}
time: {column: time, format: "%d/%b/%Y:%H:%M:%S %z"}
extra_fields: keep
"""
FIREWALL = """
source: {format: kv}
columns: {from: srcip, to: "dstip | dst", sent: {from: sentbyte, type: integer}, text: msg}
time: {column: [date, time], zone: Europe/Berlin}
extra_fields: keep
"""
IPTABLES = """
source: {format: kv}
columns: {in: IN, out: OUT, from: SRC}
time: {lines: 100 ms, from: 2024-04-19T05:00}
"""
LEADING = """
source: {format: kv, options: {lead: [month, day, clock, host]}, path: "in/{year}-04-19.*.log"}
columns: {host: host, in: IN, from: SRC}
time: {column: [year, month, day, clock], format: "%Y %b %d %H:%M:%S", zone: UTC}
extra_fields: keep
"""
COMMAS = """
source: {format: kv, options: {separator: ";", assign: ":", quote: "'"}}
columns: {a: a, b: b}
time: {column: t, format: epoch}
"""
TRACE = """
preset: syscalls/trace
extra_fields: keep
"""
LED = """
source: {format: syscalls, options: {lead: [time, pid]}}
columns: {pid: {type: integer}, call: call, back: return, fd: fd}
time: {column: time, format: epoch}
"""
CLOUD = """
source: {format: json, options: {records: "Records[]"}}
columns: {what: eventName, who: "user.arn | user.name", denied: errorCode}
time: {column: eventTime}
extra_fields: keep
"""
FIVE = datetime(2024, 4, 19, 5, tzinfo=UTC)


def parse_log(text: str, log: str) -> tuple[list[dict[str, Any]], FileSummary]:
    """Return the events of a log whose file is named for five o'clock; no line is rejected."""
    data = yaml.safe_load(text)
    data |= {"name": "log", "source": {"path": "in/%Y-%m-%d.%H.log", **data.get("source", {})}}
    if "lines" in data.get("time", {}):
        data["time"]["from"] = str(data["time"]["from"])
    stream = parse(data)
    match = stream.source.pattern.match("in/2024-04-19.05.log")
    assert match is not None
    *chunks, summary = read_file(
        io.BytesIO(log.encode()),
        "log",
        stream.layout(),
        stream.span(match),
        start=match.start,
        captures=match.captures,
    )
    events = []
    for chunk in chunks:
        assert isinstance(chunk, Chunk)
        assert chunk.rejected.to_pylist() == []
        events += chunk.events.to_pylist()
    for event in events:
        assert event.pop("source_line") == events.index(event) + 1
        event["seconds"] = (event.pop("event_time") - FIVE).total_seconds()
    assert isinstance(summary, FileSummary)
    return events, summary


@pytest.mark.parametrize(
    ("text", "log", "events"),
    [
        (
            NGINX,
            '10.0.0.1 - - [19/Apr/2024:05:00:01 +0000] "GET / HTTP/1.1" 200 12 rt=0.1235\n'
            '10.0.0.2 - bob [19/Apr/2024:07:00:02 +0200] "GET /a HTTP/2" 404 0',
            [
                {"seconds": 1.0, "client": "10.0.0.1", "user": None, "status": 200, "took": 0.124,
                 "rest": '{"bytes":"12","method":"GET","path":"/"}'},
                {"seconds": 2.0, "client": "10.0.0.2", "user": "bob", "status": 404, "took": None,
                 "rest": '{"bytes":"0","method":"GET","path":"/a"}'},
            ],
        ),
        (
            FIREWALL,
            '<13> fw date=2024-04-19 time=07:00:01 srcip=10.0.0.1 dst=10.0.0.2 sentbyte=5 msg="a b=c" flag\n'
            'date=2024-04-19\ttime="07:00:02" dstip= dst=x msg="say ""hi"" \\\\o/" msg=again srcip=y z=1',
            [
                {"seconds": 1.0, "from": "10.0.0.1", "to": "10.0.0.2", "sent": 5,
                 "text": "a b=c", "rest": None},
                {"seconds": 2.0, "from": "y", "to": "x", "sent": None,
                 "text": 'say "hi" \\o/', "rest": '{"z":"1"}'},
            ],
        ),
        (
            IPTABLES,
            "Apr 19 05:00:00 fw1 kernel: IN=eth0 OUT= SRC=10.0.0.1 DF\nIN= OUT=eth1",
            [
                {"seconds": 0.0, "in": "eth0", "out": None, "from": "10.0.0.1"},
                {"seconds": 0.1, "in": None, "out": "eth1", "from": None},
            ],
        ),
        (
            LEADING,
            'Apr 19 05:00:01 fw1 kernel: [ 12.5] [UFW BLOCK] IN=eth0 OUT= SRC=10.0.0.1 DF host="x y"\n'
            "Apr  19 05:00:02 fw2 IN=",
            [
                {"seconds": 1.0, "host": "fw1", "in": "eth0", "from": "10.0.0.1", "rest": None},
                {"seconds": 2.0, "host": "fw2", "in": None, "from": None, "rest": None},
            ],
        ),
        (
            COMMAS,
            f"t:{FIVE.timestamp()}; a:x y ;b:'1;2'",
            [{"seconds": 0.0, "a": "x y ", "b": "1;2"}],
        ),
        (
            TRACE,
            'accept fd=3 => 4\nexecve path="/bin/my sh" argv=a => -1 EPERM (not permitted)\nfork',
            [
                {"seconds": 0.0, "call": "accept", "returned": "4", "fd": "3", "path": None, "rest": None},
                {"seconds": 1.0, "call": "execve", "returned": "-1 EPERM (not permitted)", "fd": None,
                 "path": "/bin/my sh", "rest": '{"argv":"a"}'},
                {"seconds": 2.0, "call": "fork", "returned": None, "fd": None, "path": None, "rest": None},
            ],
        ),
        (
            LED,
            f"{FIVE.timestamp()} 17 read fd=4 n=100 => 100\n{FIVE.timestamp() + 1} 18 exit",
            [
                {"seconds": 0.0, "pid": 17, "call": "read", "back": "100", "fd": "4"},
                {"seconds": 1.0, "pid": 18, "call": "exit", "back": None, "fd": None},
            ],
        ),
        (
            CLOUD,
            json.dumps({"Records": [
                {"eventTime": "2024-04-19T05:00:01Z", "eventName": "Get", "user": {"arn": "a", "type": "x"}},
                {"eventTime": "2024-04-19T05:00:02Z", "eventName": "Put", "user": {"name": "b"},
                 "errorCode": "No"},
            ]}) + '\n{"Records":[{"eventTime":"2024-04-19T05:00:03Z","region":["eu"]}]}',
            [
                {"seconds": 1.0, "what": "Get", "who": "a", "denied": None, "rest": '{"user":{"type":"x"}}'},
                {"seconds": 2.0, "what": "Put", "who": "b", "denied": "No", "rest": None},
                {"seconds": 3.0, "what": None, "who": None, "denied": None, "rest": '{"region":["eu"]}'},
            ],
        ),
    ],
    ids=["nginx", "firewall", "iptables", "leading", "commas", "trace", "led", "cloud"],
)  # fmt: skip
def test_log_of_each_format_is_read_as_its_stream_declares(
    text: str, log: str, events: list[dict[str, Any]]
) -> None:
    result, summary = parse_log(text, log)
    assert result == events
    assert summary.lines == summary.accepted == len(events)
