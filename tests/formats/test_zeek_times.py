"""Zeek's times in every format that it writes, and the fields that it and others add."""

import json
from typing import Any

import pyarrow as pa
import pytest

from tests.formats.some_formats import read
from transom.formats.json.lines import JsonLines
from transom.stream import parse

CONN = parse({"name": "c", "preset": "zeek/conn", "source": {"path": "c.log"}}).layout()


def line(ts: Any, **more: Any) -> str:
    record = {"ts": ts, "uid": "C1", "id.orig_h": "10.0.0.1", "proto": "tcp", "conn_state": "SF", **more}
    return json.dumps(record) + "\n"


@pytest.mark.parametrize(
    ("ts", "ends"),
    [
        (1714971600.58679, ["05:00:00.586790", "05:00:19.583483"]),
        (1714971600586, ["05:00:00.586000", "05:00:19.582693"]),
        ("1714971600.586790", ["05:00:00.586790", "05:00:19.583483"]),
        ("2024-05-06T05:00:00.586790Z", ["05:00:00.586790", "05:00:19.583483"]),
        ("2024-05-06T07:00:00.586790+02:00", ["05:00:00.586790", "05:00:19.583483"]),
    ],
)
def test_preset_accepts_every_format_of_times(ts: Any, ends: list[str]) -> None:
    events, rejected, _ = read((line(ts) + line(ts, duration=18.996693)).encode(), CONN)
    assert rejected == []
    assert [f"{event['event_time']:%H:%M:%S.%f}" for event in events] == ends


@pytest.mark.parametrize("ts", [1714971600.58679, 1714971600586, "1714971600.5", "2024-05-06T05:00:00Z"])
def test_times_of_one_format_are_read_in_blocks(ts: Any) -> None:
    """Not line by line, which takes four times as long."""
    assert JsonLines(CONN).read_fast(pa.array([line(ts).strip()] * 3)) is not None


def test_file_of_several_formats_is_read() -> None:
    text = line(1714971600.5) + line("2024-05-06T05:00:01Z") + line(1714971602000) + line("soon")
    events, rejected, _ = read(text.encode(), CONN)
    assert [f"{event['event_time']:%S.%f}"[:4] for event in events] == ["00.5", "01.0", "02.0"]
    assert [row["detail"] for row in rejected] == [
        "bad time: soon; expected seconds or milliseconds since 1970, or ISO 8601, from 1970 to 2261"
    ]


def test_default_fields_are_columns_and_fields_of_shippers_are_no_drift() -> None:
    text = line(1, tunnel_parents=["C7", "C8"], ip_proto=6, _path="conn", _write_ts="x", other=1)
    events, rejected, summary = read(text.encode(), CONN)
    assert (rejected, summary.unknown) == ([], ("other",))
    assert (events[0]["tunnel_parents"], events[0]["ip_proto"]) == ('["C7","C8"]', 6)
    tsv = b"#fields\tts\tuid\ttunnel_parents\tip_proto\t_node\n1\tC1\tC7,C8\t6\tx\n2\tC2\t(empty)\t17\tx\n"
    events, rejected, summary = read(tsv, CONN)
    assert (rejected, summary.unknown) == ([], ())
    assert [(event["tunnel_parents"], event["ip_proto"]) for event in events] == [("C7,C8", 6), ("", 17)]
