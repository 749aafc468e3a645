"""Small logs that failed once, each with its correct reading: the draft of `init`, read as a job reads it.

Rules that need a whole run are tested elsewhere. In `tests/ingest/test_equal_file_tables.py`: equal files of
two hosts both count, an hour waits for the file named after its end, and the end of summer time with
`time.interval`. In `tests/ingest/test_ingest_checks.py`: the checks on runs of NUL bytes.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.cli.examples import DATA
from tests.cli.init.drafted_logs import Drafted, decided, drafted, home, refusal
from transom.cli.init.draft import draft
from transom.cli.log_sample import read_sample
from transom.formats.read_file import Chunk, read_file
from transom.stream import parse

__all__ = ["home"]
CASES = DATA / "cases"


class Right(NamedTuple):
    """The correct reading of a log.

    Attributes:
        events: number of events; all lines except header lines.
        headers: number of header lines.
        times: times of the first and of the last event.
        first: some columns of the first event.
        options: options of the source.
        measures: names of the first aggregates.
    """

    events: int
    headers: int
    times: tuple[str, str]
    first: dict[str, Any]
    options: Mapping[str, Any] = MappingProxyType({})
    measures: tuple[str, ...] = ("n",)


def conn(first: str, last: str) -> Right:
    """Zeek writes a connection at its end, which is `ts` plus the duration."""
    output = {"uid": "C150", "orig_h": "10.0.0.0", "resp_p": 443, "duration": 18.996693}
    return Right(10, 0, (first, last), output, {"variant": "json"}, ("n", "total_duration"))


RECORDS = {"severity_text": "Error", "body_string_value": "GET / 0"}
RIGHT = {
    # Lists of objects: the object with the time is the event, and the list stays.
    "orders.json": Right(
        12, 0, ("2024-05-06T10:00:00.000", "2024-05-06T10:11:00.000"),
        {"order": 0, "customer": "c0", "items": '[{"sku":"a0","qty":1}]'}, {}, ("n", "total_total"),
    ),
    "dns_answers.json": Right(
        12, 0, ("2024-05-06T10:00:00.539", "2024-05-06T10:01:17.992"),
        {
            "flow_id": 0, "src_ip": "10.0.0.1",
            "dns_answers": '[{"rrname":"a.example.com","rrtype":"A","ttl":30,"rdata":"192.0.2.0"}]',
        },
    ),
    "log_records.json": Right(
        12, 0, ("2026-02-21T16:35:06.842", "2026-02-21T16:35:18.785"), RECORDS
    ),
    "otlp.json": Right(
        27, 0, ("2026-02-21T16:35:06.842", "2026-02-21T16:35:35.705"),
        RECORDS | {
            "scope_name": "b",
            "resource_attributes": '[{"key":"service.name","value":{"stringValue":"svc0"}}]',
        },
        {"records": "resourceLogs[].scopeLogs[].logRecords[]"},
    ),
    # A quoted token followed by a comma; JSON in a container's line.
    "cri_json.log": Right(
        12, 0, ("2024-03-01T10:00:02.914", "2024-03-01T10:01:05.493"),
        {"stream": "stdout", "tag": "F", "level_": "info", "msg": "request done", "path": "/a/0",
         "took_ms": 75},
    ),
    "minimal.log": Right(
        6, 0, ("2024-05-01T10:00:00.000", "2024-05-01T10:00:05.000"),
        {"field_2": "web", "field_3": "GET", "field_5": 200},
    ),
    "web_error.log": Right(
        5, 0, ("2024-05-06T07:01:12.000", "2024-05-06T07:03:09.000"),
        {
            "level_": "error", "client": "203.0.113.9", "server": "shop.example",
            "request": "GET /cart HTTP/1.1", "upstream": "http://10.0.3.7:8080/cart", "host": "shop.example",
        },
    ),
    # A header line whose delimiter is a blank; a handful of lines without data.
    "flow.log": Right(
        59, 1, ("2024-05-28T06:00:00.000", "2024-05-28T06:10:05.000"),
        {"srcaddr": None, "log_status": "NODATA"}, {"delimiter": " "}, ("n", "total_bytes"),
    ),
    "quiet.log": Right(
        2, 1, ("2024-05-28T06:00:00.000", "2024-05-28T06:01:05.000"),
        {"log_status": "NODATA"}, {"delimiter": " "},
    ),
    "conn_iso.log": conn("2024-05-06T05:00:19.583", "2024-05-06T05:18:36.583"),
    "conn_ms.log": conn("2024-05-06T05:00:19.582", "2024-05-06T05:18:36.582"),
    # Four header lines of a data logger, and a text for missing values.
    "toa5.dat": Right(
        56, 4, ("2024-05-06T10:00:00.000", "2024-05-06T19:10:00.000"),
        {"record": 0, "batt_v_min": 12.95, "air_tc_avg": 18.098},
        {"header": 2, "skip": 4}, ("n", "mean_batt_v_min"),
    ),
    "hour.dat": Right(
        6, 4, ("2024-05-06T10:00:00.000", "2024-05-06T10:50:00.000"),
        {"record": 0, "rh": 83.5}, {"header": 2, "skip": 4}, ("n", "mean_batt_v_min"),
    ),
    # Whole times in each line.
    "colon_after_the_clock.log": Right(
        3, 0, ("2024-05-06T10:00:00.000", "2024-05-06T11:02:09.000"),
        {"message": "%ASA-6-302013: Built outbound TCP connection 11 for outside:203.0.113.9/443"},
    ),
    "comma_after_the_clock.log": Right(
        4, 0, ("2016-09-28T04:30:30.000", "2016-09-28T05:00:00.000"), {"level_": "Info"}
    ),
    "slashes_two_digit_year.log": Right(
        4, 0, ("2017-06-09T20:10:40.000", "2017-06-09T21:00:00.000"), {"level_": "INFO"}
    ),
}  # fmt: skip


def case(folder: Path, name: str) -> Drafted:
    return drafted(folder, (CASES / name).read_text(), name)


@pytest.mark.parametrize("name", RIGHT)
def test_draft_reads_a_log_right(tmp_path: Path, name: str) -> None:
    result, right = case(tmp_path, name), RIGHT[name]
    assert (len(result.events), result.refused, result.header_lines) == (right.events, [], right.headers)
    assert (result.times[0], result.times[-1]) == right.times
    assert result.events[0] | right.first == result.events[0]
    options = {key: value for key, value in result.stream.source.options.items() if key in right.options}
    assert options == dict(right.options)
    assert tuple(result.stream.aggregates["activity"].measures) == right.measures
    # Nothing is loosened, and no time is invented.
    output = decided(result.text)
    assert "checks" not in output
    assert "lines" not in output.get("time", {})


def test_missing_value_text_of_a_data_logger_is_null(tmp_path: Path) -> None:
    column = case(tmp_path, "toa5.dat").column("air_tc_avg")
    assert (column.count(None), len(column)) == (1, 56)


def test_every_column_of_an_error_log_is_read(tmp_path: Path) -> None:
    result = case(tmp_path, "web_error.log")
    limited, buffered = result.events[2:4]
    assert (limited["message"], limited["upstream"]) == (
        'limiting requests, excess: 5.410 by zone "one"',
        None,
    )
    assert buffered["referrer"] == "https://shop.example/"


@pytest.mark.parametrize(
    ("odd", "refused"),
    [
        # A quote that is never closed, and a carriage return inside a line.
        ('2024-05-06T10:08:20Z,"a b,500', [("unterminated_quote", '2024-05-06T10:08:20Z,"a b,500')]),
        ("2024-05-06T10:08:20Z,a\rb,500", []),
    ],
)
def test_one_odd_line_of_a_thousand_is_rejected(
    tmp_path: Path, odd: str, refused: list[tuple[str, str]]
) -> None:
    rows = [f"2024-05-06T10:{n // 60:02}:{n % 60:02}Z,a b,{n}" for n in range(1000)]
    rows[500] = odd
    result = drafted(tmp_path, "".join(f"{row}\n" for row in ["at,msg,n", *rows]), "a.csv")
    assert (len(result.events), result.refused) == (1000 - len(refused), refused)
    assert (result.stream.source.format, dict(result.stream.source.options)) == ("csv", {})
    assert [*result.stream.columns] == ["msg", "n"]


def test_records_over_several_lines_are_refused(tmp_path: Path) -> None:
    output = refusal(tmp_path, (CASES / "postgresql.csv").read_text(), "postgresql.csv")
    assert output.startswith("is CSV whose quoted values go over several lines: 84 records in 120 lines. ")


def test_repeated_local_hour_has_six_readings_each_time(tmp_path: Path) -> None:
    """In the zone that the draft requires."""
    file = tmp_path / "meter.csv"
    file.write_bytes((CASES / "meter.csv").read_bytes())
    data = decided(draft([read_sample(file)], "m").text)
    data["time"]["zone"] = "Europe/Berlin"
    stream, hours, ambiguous = parse(data), Counter[str](), 0
    with file.open("rb") as source:
        for part in read_file(source, "meter.csv", stream.layout(), None):
            if isinstance(part, Chunk):
                hours.update(f"{time:%dT%H}" for time in part.events["event_time"].to_pylist())
            else:
                ambiguous = part.ambiguous
    assert (hours, ambiguous) == (
        {"26T22": 6, "26T23": 6, "27T00": 6, "27T01": 6, "27T02": 6, "27T03": 6, "27T04": 6, "27T05": 6},
        0,
    )


def test_log_truncated_during_writing_is_read(tmp_path: Path) -> None:
    rest = '+0000] "GET / HTTP/1.1" 200 9 "-" "c"'
    lines = [f"192.0.2.{n % 9} - - [06/May/2024:10:{n // 60:02}:{n % 60:02} {rest}" for n in range(600)]
    result = drafted(tmp_path, "\0" * 300_000 + "".join(f"{one}\n" for one in lines), "access.log.gz")
    assert (len(result.events), result.refused) == (600, [])
    assert Counter(result.column("client")) == {f"192.0.2.{n}": 67 if n < 6 else 66 for n in range(9)}


def test_capture_distinguishes_files_of_two_hosts(tmp_path: Path) -> None:
    """Also if one hour's files are equal byte for byte, as of health checks."""
    form = '10.0.0.250 - - [06/May/2024:{hour}:{minute:02}:00 +0000] "GET /health HTTP/1.1" 200 2 "-" "b"\n'
    samples = []
    for host in ("web1", "web2"):
        for hour in (10, 11):
            file = tmp_path / f"landing/2024-05-06/{host}.{hour}.log"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(form.format(hour=hour, minute=minute) for minute in range(60)))
            samples.append(read_sample(file))
    stream = parse(decided(draft(samples, "web").text))
    assert stream.source.path == "landing/%Y-%m-%d/{host}.%H.log"
    identities = {
        (match.hour, *match.captures.values())
        for sample in samples
        if (match := stream.source.pattern.match(str(sample.path.relative_to(tmp_path)))) is not None
    }
    assert len(identities) == 4


def test_names_with_the_end_of_a_period_are_recognised(tmp_path: Path) -> None:
    """Five-minute files of a load balancer: T0700 is of the hour 06:00."""
    balancer = (DATA / "examples/balancer.log").read_text().splitlines()
    before, _, later = balancer[0].partition("2024-05-28T")
    samples, folder = [], "AWSLogs/2024/05/28"
    for period in range(12):
        minute = 5 * period
        file = tmp_path / folder / f"lb_20240528T{6 + (minute + 5) // 60:02}{(minute + 5) % 60:02}Z_x.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        times = [f"06:{minute + second // 60:02}:{second % 60:02}" for second in range(1, 300, 15)]
        rest = later[8:]
        file.write_text("".join(f"{before}2024-05-28T{time}{rest}\n" for time in times))
        samples.append(read_sample(file))
    text = draft(samples, "lb").text
    source = parse(decided(text)).source
    assert source.path == f"{folder[:7]}/%Y/%m/%d/lb_%Y%m%dT%H%M*.log"
    assert (source.name_time, source.covers) == ("end", timedelta(minutes=5))
    match = source.pattern.match(f"{folder}/lb_20240528T0700Z_x.log")
    assert match is not None
    assert f"{match.hour:%H:%M}" == "06:00"
