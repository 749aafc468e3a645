"""A stream file drafted from a log's first lines, for every format; other files are refused."""

import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, timedelta
from difflib import ndiff
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import Result

from tests.cli.examples import DATA, EXAMPLES, FOREIGN, logs, stream_file
from transom.cli.init.infer_path import identifier, pattern_of
from transom.cli.init.infer_types import ColumnType, kind_of
from transom.cli.log_sample import LogSample, read_sample
from transom.core.path_pattern import PathPattern
from transom.formats.read_file import Chunk, FileSummary, read_file
from transom.stream import SpecificationError, load, parse

Ask = Callable[..., Result]
ROOT = DATA.parents[1]


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSOM_HOME", str(ROOT))
    monkeypatch.delenv("TRANSOM_LANDING", raising=False)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_differs_from_its_draft_in_at_most_ten_lines(run: Ask, name: str) -> None:
    result = run("init", *logs(name), "--name", name)
    text = {
        "nginx": "transom: 1 of 261 lines is rejected by this draft:\n",
        "trace": "transom: no field looks like a time: the draft has no `time`, which `check` wants; add "
        "one\n",
    }.get(name, "")
    assert (result.exit_code, result.stderr[: len(text) or None]) == (0, text)
    assert yaml.safe_load(result.stdout)["name"] == name
    if name == "trace":
        with pytest.raises(SpecificationError, match="time: is required"):
            parse(yaml.safe_load(result.stdout))
    else:
        assert parse(yaml.safe_load(result.stdout)).name == name
    retained = stream_file(name).read_text()
    changes = Counter(line[:2] for line in ndiff(result.stdout.splitlines(), retained.splitlines()))
    assert max(changes["+ "], changes["- "]) <= (3 if name in FOREIGN else 10)
    assert load(stream_file(name)).name == name


def test_suggested_blocks_are_valid_without_their_comment_signs(run: Ask) -> None:
    text = run("init", *logs("nginx"), "--name", "nginx").stdout
    before, sign, suggested = text.partition("    # fit:")
    blocks = re.sub("^( *)# ", r"\1", sign + suggested, flags=re.M)
    for place, value in {
        "NAME": "one",
        "COLUMN": "client",
        "CONDITION": "status >= 500",
        "OTHER": "before",
    }.items():
        assert place in blocks
        blocks = blocks.replace(place, value)
    stream = parse(yaml.safe_load(before + blocks))
    assert stream.aggregates["activity"].fit is not None
    named = (stream.persistence, stream.patterns, stream.frames, stream.fills)
    assert [[*kind] for kind in named] == [["one"], ["one"], ["one"], ["before"]]


WHOLE = {
    # Counted in each log by hand: events, the first time, the sum of a column.
    "balancer": (60, "2024-05-28T06:00:", "field_9", lambda line: int(line.split()[8])),
    "flow": (60, "2024-05-28T06:00:00", "bytes", lambda line: int(line.split()[9].replace("-", "0"))),
    "gateway": (
        60,
        "2024-05-28T06:00:00",
        "sentbyte",
        lambda line: int(line.split("sentbyte=")[1].split()[0]),
    ),
    "station": (48, "2024-05-28T06:00:00", "rain_mm_tot", lambda line: float(line.split(",")[5])),
    "conn_iso": (60, "2024-05-28T06:00:", "orig_bytes", lambda line: int(json.loads(line)["orig_bytes"])),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_log_of_an_external_format_is_read_correctly(name: str) -> None:
    (log,) = logs(name)
    stream = load(stream_file(name))
    events, start, column, value = WHOLE[name]
    *chunks, summary = read_file(io.BytesIO(log.read_bytes()), log.name, stream.layout(), None)
    assert isinstance(summary, FileSummary)
    assert (summary.accepted, summary.rejected, summary.unknown) == (events, 0, ())
    rows = [row for chunk in chunks if isinstance(chunk, Chunk) for row in chunk.events.to_pylist()]
    lines = log.read_text().splitlines()[-events:]
    assert [row[column] or 0 for row in rows] == [value(line) for line in lines]
    # Zeek's records end after their time.
    ends = [row["event_time"] - timedelta(seconds=row.get("duration") or 0) for row in rows[:1]]
    assert f"{ends[0].astimezone(UTC):%Y-%m-%dT%H:%M:%S}".startswith(start)
    assert "sum" in {measure.function for measure in stream.aggregates["activity"].measures.values()} or (
        name == "balancer"
    )


def test_draft_names_its_input_and_its_unknowns(
    run: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["transom"])
    folder = tmp_path / "landing" / "north"
    folder.mkdir(parents=True)
    log = folder / "2024-05-01.csv.gz"
    rows = [f"{hour:02}:{minute:02}:00" for hour in (7, 8) for minute in range(0, 60, 6)]
    lines = ["at,Device ID,temp,hour,ok"]
    lines += [
        f"2024-05-01 {time},d{n % 3},{'-999' if n == 4 else n / 4},{n},true" for n, time in enumerate(rows)
    ]
    log.write_bytes(gzip.compress("\n".join(lines).encode()))
    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))
    output = tmp_path / "north.yaml"
    written = run("init", log, "--output", output)
    assert (written.exit_code, written.stdout, written.stderr) == (
        0,
        f"{output}: written. Look at its question marks, then:\n"
        f"  transom check {output}\n  transom try {output} {log}\n",
        "",
    )
    assert (
        output.read_text()
        == """\
# Drafted from 2024-05-01.csv.gz: 21 lines, 20 events,
# 2024-05-01T07:00 to 2024-05-01T09:00 UTC (2 hours). A question mark is a guess to look at.
name: north
source:
  path: "landing/north/%Y-%m-%d.csv.gz"  # ?: the times in the names are read as UTC; else set their `zone`
  # expected_files: 1                    # ?: how many files an hour has; with it a missing one is seen
  format: csv
columns:
  device_id: Device ID                                                   # d0, d1, d2
  temp: {from: temp, type: number, resolution: 0.01, missing: ["-999"]}  # 0.0, 0.25, 0.5
  hour_: {from: hour, type: integer}                                     # 0, 1, 2
  ok: {from: ok, type: boolean}                                          # true
time: {column: at, zone: UTC}  # 2024-05-01 07:00:00; ?: which zone these are in, such as Europe/Berlin
key: [device_id]  # 3 values in these lines
aggregates:
  activity:
    measures: {n: count, mean_temp: mean(temp)}
    levels: RANGES 1 HOUR, 5 MINUTES SLIDES 5 MINUTES, 5 MINUTES
    # fit: {}  # a line through each window, for an alert on slow growth: see docs/concepts/windows.md
    # alert: "n > 100 and slope_n > 0"
# persistence:  # items that come again and again, however rarely: see docs/concepts/persistent-items.md
#   NAME: {item: [COLUMN], slot: 1 hour, window: 1 day, alpha: 0.7, epsilon: 0.3}
# patterns:  # episodes of several steps, minutes or days apart: see docs/concepts/widening.md
#   NAME:
#     within: 1 day
#     steps:
#       - {id: first, where: CONDITION, times: 5, within: 1 hour}
#       - {id: then, where: CONDITION, gap: {max: 30 minutes}}
# frames:  # periods in which a value is high, rises or stays as it is: see docs/concepts/frames.md
#   NAME: {source: activity, kind: threshold, where: n > 100, min_length: 10 minutes}
# fills:  # what was there then, or at the same time of earlier days
#   OTHER: {frame: NAME, source: activity, shift: [1 day], measures: {n: sum(n)}}
"""
    )
    again = run("init", log, "--output", output)
    assert (again.exit_code, again.stderr) == (
        2,
        f"transom: {output}: is there already, and is not overwritten; name another file\n",
    )


def test_empty_files_among_others_are_skipped(run: Ask, tmp_path: Path) -> None:
    empty, log, output = tmp_path / "web.10.log", tmp_path / "web.11.log", tmp_path / "web.yaml"
    empty.touch()
    log.write_text("".join(f"2024-05-06T11:00:0{n}Z a{n} 7\n" for n in range(9)))
    drafted = run("init", empty, log, "--output", output)
    assert drafted.exit_code == 0
    assert f"transom: {empty}: is empty, and skipped\n" in drafted.stderr
    assert f"try {output} {log}" in drafted.stdout


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.log", b"", "must hold a line; it is empty"),
        ("a.log", b"\n\r\n", "must hold a line; it has blank lines alone"),
        ("a.log", b"\0" * 300, "must hold a line; it holds 300 NUL bytes and nothing else\n"),
        ("a.log", b"\x7fELF\0\0", "must be text, a line a record; got a binary file, with a zero byte at 4"),
        (
            "a.log",
            "Zürich\nGrün\na\n".encode("latin-1"),
            "must be text in UTF-8; 2 of 3 lines are not. If it is in ISO-8859-1, as it seems: "
            "iconv -f ISO-8859-1 -t UTF-8 FILE > NEW\n",
        ),
        (
            "a.log",
            "“a”\n".encode("cp1252"),
            "must be text in UTF-8; 1 of 1 line is not. If it is in WINDOWS-1252, as it seems: "
            "iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW\n",
        ),
        *(
            (
                "a.log",
                mark + "a line\nä\n".encode(encoding),
                f"must be text in UTF-8; it is in {name}. Convert it: iconv -f {name} -t UTF-8 FILE > NEW\n",
            )
            for mark, encoding, name in (
                (b"\xff\xfe", "utf-16-le", "UTF-16"),
                (b"\xfe\xff", "utf-16-be", "UTF-16"),
                (b"", "utf-16-le", "UTF-16LE"),
                (b"", "utf-16-be", "UTF-16BE"),
            )
        ),
        ("a.log", gzip.compress(b"a line\n", mtime=0), "is gzip, so its name must end in .gz"),
        ("a.gz", b"a line\n", "must be gzip, as its name implies; corrupt: after 0 decompressed bytes: "),
        ("a.log", b"x" * 2**21, "a line must end within 1048576 bytes; the first one is longer\n"),
        (
            "a.log",
            b"[" * 2**21,
            "a line must end within 1048576 bytes; the first one is longer; of JSON, make an object a line: "
            "jq -c '.[]' FILE > NEW\n",
        ),
        ("gone.log", None, "there is no such file"),
        (".", None, "must be a file; it is a folder, name the files in it"),
    ],
)
@pytest.mark.parametrize("command", ["init", "try"])
def test_file_that_is_no_log_is_refused_by_name(
    run: Ask, tmp_path: Path, command: str, name: str, content: bytes | None, texts: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    stream = [stream_file("apache")] if command == "try" else []
    result = run(command, *stream, file)
    # A readable file without events and an unreadable file are different cases.
    read = "lines became an event" in texts or "an unknown form" in texts
    assert (result.exit_code, result.stdout) == (1 if read else 2, "")
    assert result.stderr.startswith(f"transom: {file}: {texts}")
    assert result.stderr.count("\n") == 1


def test_files_of_several_formats_are_refused(run: Ask) -> None:
    one, other = logs("nginx")[0], logs("audit")[0]
    assert run("init", one, other).stderr == (
        f"transom: {other}: must be of the form of {one}, regex; it is json\n"
    )


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-", "20"], ColumnType("integer", ("-",))),
        (["1.5", "2.25", "-999"], ColumnType("number", ("-999",), "0.01")),
        (["-999", "-1000.5"], ColumnType("number", (), "0.1")),
        (["007"], ColumnType("string")),
        (["T", "F", "-"], ColumnType("boolean", ("-",))),
        (["F", "F"], ColumnType("string")),
        (["2024-05-01"], ColumnType("string")),
        (["2024-05-01T10:00:00Z"], ColumnType("timestamp", form="iso")),
        (["2024-05-01 10:00"], ColumnType("timestamp", form="iso", local=True)),
        (["1714550400.25"], ColumnType("timestamp", form="epoch")),
        (["1714550400.123", "1714550401.124"], ColumnType("timestamp", form="epoch")),
        (["20240501103000"], ColumnType("timestamp", form="%Y%m%d%H%M%S", local=True)),
        (["Nov 22 06:55:22"], ColumnType("string")),
        (["1,5", "20", "-0,25"], ColumnType("string", comma="0.01")),
        (["1,5", "1,234,567"], ColumnType("string")),
        (["1,234", "-21,375", "7"], ColumnType("string", thousands=True)),
        (["1,234", "0,375"], ColumnType("string", comma="0.001")),
        (["2.5e-9", "-4e-8", "0"], ColumnType("number", resolution="0.0000000001")),
        (["1e-20"], ColumnType("number", resolution="0.000000000001")),
        (["0.5", "1e-9"], ColumnType("number", resolution="0.000001")),
        (["0.0"], ColumnType("number", resolution="0.1")),
        (
            ["5/1/2024 1:00 PM"] * 2 + ["5/13/2024 2:00 PM"],
            ColumnType("timestamp", form="%m/%d/%Y %I:%M %p", local=True),
        ),
        (["2024-05-06 10:00:00.5 +0200"], ColumnType("timestamp", form="%Y-%m-%d %H:%M:%S.%f %z")),
        (["2024.05.06 10:00:00"], ColumnType("timestamp", form="%Y.%m.%d %H:%M:%S", local=True)),
        (["May 6, 2024 10:00:00 AM"], ColumnType("timestamp", form="%b %d, %Y %I:%M:%S %p", local=True)),
        (["1714550400250"], ColumnType("timestamp", form="epoch_ms")),
        (["1714550400250123"], ColumnType("timestamp", form="epoch_us")),
        (["1714550400250123456"], ColumnType("timestamp", form="epoch_ns")),
        (["1", "2.5"] * 15 + ["ERR"], ColumnType("number", resolution="0.1", share=30 / 31)),
        (["1", "20"] * 5 + ["ERR"] * 2, ColumnType("string")),
        (["1", "20"] * 15 + ["007"], ColumnType("string")),
        (["1", "20"] * 15 + ["1,5"], ColumnType("string", comma="0.1")),
        (["2024-05-01T10:00:00Z"] * 19 + ["kaputt"], ColumnType("timestamp", form="iso", share=0.95)),
        (["2024-05-01T10:00:00Z"] * 8 + ["kaputt"], ColumnType("string")),
        (["kaputt"] + ["1714550400"] * 19, ColumnType("timestamp", form="epoch", share=0.95)),
        (["12"] + ["1714550400"] * 19, ColumnType("integer")),
        (
            ["oh"] + ["01/02/2024 10:00:00"] * 18 + ["13/02/2024 10:00:00"],
            ColumnType("timestamp", form="%d/%m/%Y %H:%M:%S", local=True, share=0.95),
        ),
        (["13.02.2024 10:00"], ColumnType("timestamp", form="%d.%m.%Y %H:%M", local=True)),
        (
            ["01/02/2024 10:00:00"],
            ColumnType("timestamp", form="%m/%d/%Y %H:%M:%S", local=True, otherwise="%d/%m/%Y %H:%M:%S"),
        ),
    ],
)
def test_type_of_a_column_is_inferred(values: list[str], kind: ColumnType) -> None:
    assert kind_of(values) == kind


@pytest.mark.parametrize(
    ("paths", "pattern"),
    [
        (["w/2015-05-17/a.10.log.gz", "w/2015-05-17/a.11.log.gz"], "w/%Y-%m-%d/a.%H.log.gz"),
        (["2020-04-30/conn.05:00:00-06:00:00.log.gz"], "%Y-%m-%d/conn.%H*.log.gz"),
        (["s/north/2024-05-01.csv", "s/south/2024-05-02.csv"], "s/{folder}/%Y-%m-%d.csv"),
        (["l/access.log", "l/access.log.1"], "l/access.log*"),
        (["x/20240501/20240501_1030.json"], "x/%Y%m%d/%Y%m%d_%H*.json"),
        (["l/2024-05-01/a.2024-05-01.log"], "l/%Y-%m-%d/a.%Y-%m-%d.log"),
        (["nf.202405280605", "nf.202405280610"], "nf.%Y%m%d%H*"),
        (["l/a-2024052806.log", "l/a-2024052807.log"], "l/a-%Y%m%d%H.log"),
        (["a.20240528079999.log", "a.20240528089999.log"], "a.202405280*9999.log"),
        (["100%/{x}.log"], "100%%/*x*.log"),
        (["d/2024-05-06/web1.10.log", "d/2024-05-06/web2.11.log"], "d/%Y-%m-%d/{host}.%H.log"),
        (
            [
                "access-north-2024-05-06T10.log",
                "access-east-2024-05-06T10.log",
                "access-a1-2024-05-07T10.log",
            ],
            "access-{host}-%Y-%m-%dT%H.log",
        ),
        # Two parts differ, or a part is missing: which one is the host is unknown.
        (["a1_b1.2024-05-06.log", "a2_b2.2024-05-06.log"], "a*.%Y-%m-%d.log"),
        (["web.2024-05-06.log", "web.b.2024-05-06.log"], "web.*%Y-%m-%d.log"),
        # A capture that is empty in one of the names is no capture.
        (["web-.2024-05-06.log", "web-b.2024-05-06.log"], "web-*.%Y-%m-%d.log"),
    ],
)
def test_pattern_is_derived_from_names(paths: list[str], pattern: str) -> None:
    assert pattern_of(paths) == pattern
    matches = [PathPattern(pattern).match(path) for path in paths]
    assert all(match is not None and not match.empty for match in matches)


@given(st.lists(st.text(min_size=1, max_size=80), max_size=20))
def test_any_field_names_become_valid_column_names(fields: list[str]) -> None:
    names: list[str] = []
    for field in fields:
        names.append(identifier(field, names))
    assert len(set(names)) == len(names)
    columns = dict.fromkeys(names, "x")
    source = {"path": "x.log", "format": "json"}
    assert (
        list(parse({"name": "x", "source": source, "columns": columns, "time": {"column": "t"}}).columns)
        == names
    )


def test_sample_ends_with_a_whole_line(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"\xef\xbb\xbfone\r\n\ntwo\nthree\n")
    assert read_sample(file) == LogSample(file, ("one", "two", "three"), True)
    assert read_sample(file, 15) == LogSample(file, ("one", "two"), False)
