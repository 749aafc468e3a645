"""Full times anywhere in a line, and the zone in a field next to them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.init.drafted_logs import drafted, home
from transom.cli.init.draft import draft
from transom.cli.log_sample import read_sample
from transom.stream import SpecificationError, parse

__all__ = ["home"]


@pytest.mark.parametrize(
    ("before", "first"),
    [
        ("May 06 2024 10:00:{n:02}: %ASA-6-302013:", "2024-05-06T10:00:00"),
        ("May  6 2024 10:00:{n:02}: %ASA-6-302013:", "2024-05-06T10:00:00"),
        ("2016-09-28 04:30:{n:02}, Info     CBS   ", "2016-09-28T04:30:00"),
        ("17/06/29 20:10:{n:02} INFO executor.Backend:", "2017-06-29T20:10:00"),
        ("[2024-05-06 10:00:{n:02}]: main", "2024-05-06T10:00:00"),
        ("(2024-05-06T10:00:{n:02}Z) main", "2024-05-06T10:00:00"),
        ("<2024-05-06 10:00:{n:02}> main", "2024-05-06T10:00:00"),
        ("1714990000.{n:03}: main", "2024-05-06T10:06:40"),
        ("main; 2024/05/06 10:00:{n:02}; it", "2024-05-06T10:00:00"),
        ("081109 2036{n:02} 148 INFO", "2008-11-09T20:36:00"),
        ("2024-05-06-10.00.{n:02}.363779 R02", "2024-05-06T10:00:00"),
        ("2024-05-06_10:00:{n:02} R02", "2024-05-06T10:00:00"),
        ("10:00:{n:02} 31/05/2024 R02", "2024-05-31T10:00:00"),
        ("2024 May 06 10:00:{n:02} sw1", "2024-05-06T10:00:00"),
        ("20240506T1000{n:02} R02", "2024-05-06T10:00:00"),
        ("06/May/2024:10:00:{n:02} R02", "2024-05-06T10:00:00"),
        ("31/12/2024 10:00:{n:02}+0200 R02", "2024-12-31T08:00:00"),
        ("[2024-05-06T10:00:{n:02},500][INFO ][x]", "2024-05-06T10:00:00.500"),
        ("20240506T1000{n:02}.123Z R02", "2024-05-06T10:00:00.123"),
        ("2024-May-06 10:00:{n:02} R02", "2024-05-06T10:00:00"),
        ("2024-05-06_10-00-{n:02} R02", "2024-05-06T10:00:00"),
        ("2024-127 10:00:{n:02} R02", "2024-05-06T10:00:00"),
        ("<134>May 06 2024 10:00:{n:02} sw1", "2024-05-06T10:00:00"),
        ("INFO:2024-05-06 10:00:{n:02}: R02", "2024-05-06T10:00:00"),
        ("WARNING:app.main:2024-05-06 10:00:{n:02} R02", "2024-05-06T10:00:00"),
        ("2024-05-06T10:00:{n:02}.000Z[main] R02", "2024-05-06T10:00:00"),
        ("Mon May  6 10:00:{n:02} PM CEST 2024 R02", "2024-05-06T20:00:00"),
        ("Mon May  6 10:00:{n:02} PM 2024 R02", "2024-05-06T22:00:00"),
        ("Mon 06 May 2024 10:00:{n:02} PM UTC R02", "2024-05-06T22:00:00"),
        ("Mon 06 May 2024 10:00:{n:02} PM CEST R02", "2024-05-06T20:00:00"),
        ("2024-05-06 10:00:{n:02}.123 PM R02", "2024-05-06T22:00:00.123"),
        ("06.05.24 at 10:00:{n:02} PM R02", "2024-05-06T22:00:00"),
        ("2024-05-06 10.00.{n:02} PM R02", "2024-05-06T22:00:00"),
        ("2024-05-06 10:00:{n:02} pm starting the server", "2024-05-06T22:00:00"),
        ("May 06 10:00:{n:02} UTC 2024 R02", "2024-05-06T10:00:00"),
        ("Mon May 06 10:00:{n:02}.000123 CEST 2024 R02", "2024-05-06T08:00:00.000"),
        ("202405061000{n:02}123 R02", "2024-05-06T10:00:00.123"),
        ("[06-May-2024 10:00:{n:02} Europe/Berlin] R02", "2024-05-06T08:00:00"),
        ("2024-05-06 10:00:{n:02} America/New_York R02", "2024-05-06T14:00:00"),
        ("2024-05-06 10:00:{n:02} (+0200) R02", "2024-05-06T08:00:00"),
        ("2024 05 06 10 00 {n:02} R02", "2024-05-06T10:00:00"),
    ],
)
def test_full_time_in_each_line_is_found(tmp_path: Path, before: str, first: str) -> None:
    lines = [f"{before.format(n=n)} {'said ' * (n % 3)}that it is {n}" for n in range(20)]
    actual = drafted(tmp_path, lines)
    assert (actual.times[0][: len(first)], len(actual.events), actual.refused) == (first, 20, [])
    assert "lines" not in yaml.safe_load(actual.text)["time"]


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        (
            ["#YY  MM DD hh mm WDIR", "#yr  mo dy hr mn degT", "2024 05 06 10 {n:02} {n:4}"],
            ["yr", "mo", "dy", "hr", "mn"],
        ),
        (
            ["Station,Year,Month,Day,Hour,Min,Sec,v", "x,2024,5,6,10,{n},0,{n}"],
            ["Year", "Month", "Day", "Hour", "Min", "Sec"],
        ),
        (
            ["year,month,day,hour (UTC),minute,speed", "2024,5,6,10,{n},{n}"],
            ["year", "month", "day", "hour (UTC)", "minute"],
        ),
    ],
)
def test_parts_of_a_time_in_columns_are_joined(tmp_path: Path, lines: list[str], columns: list[str]) -> None:
    *head, row = lines
    actual = drafted(tmp_path, [*head, *(row.format(n=n) for n in range(20))])
    assert yaml.safe_load(actual.text)["time"]["column"] == columns
    assert (actual.times[1], actual.refused, actual.header_lines) == (
        "2024-05-06T10:01:00.000",
        [],
        len(head),
    )


def test_number_after_the_parts_of_a_time_is_no_part(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    rows = "".join(f"2024,5,6,10,{n}\n" for n in range(20))
    log.write_text(f"Year,Month,Day,Hour,MaxTemp\n{rows}")
    assert draft([read_sample(log)]).untimed == "no field looks like a time"


def test_ambiguous_date_is_reported(tmp_path: Path) -> None:
    text = drafted(tmp_path, [f"17/06/09 20:10:{n:02} INFO it {n}" for n in range(20)]).text
    assert "?: or %d/%m/%y %H:%M:%S, these lines fit both" in text


@pytest.mark.parametrize("numbers", ["811 2036", "123456 789", "991231 7"])
def test_arbitrary_numbers_are_no_times(tmp_path: Path, numbers: str) -> None:
    file = tmp_path / "a.log"
    file.write_text("".join(f"{numbers}{n:02} took {n}\n" for n in range(60)))
    computed = draft([read_sample(file)])
    assert computed.untimed == "no field looks like a time"
    data = yaml.safe_load(computed.text)
    assert "time" not in data
    with pytest.raises(SpecificationError, match="time: is required"):
        parse(data)


def pairs(clock: str, zone: str) -> list[str]:
    return [f'date=2024-04-19 time={clock.format(n=n)} n={n} tz="{zone}" msg="a b"' for n in range(20)]


@pytest.mark.parametrize(
    ("zone", "declared", "first"),
    [
        ("+0200", {"format": "%Y-%m-%d %H:%M:%S %z"}, "04:00:00"),
        ("-03:30", {"format": "%Y-%m-%d %H:%M:%S %z"}, "09:30:00"),
        ("CEST", {"format": "%Y-%m-%d %H:%M:%S %Z", "zone": "Europe/Berlin"}, "04:00:00"),
        ("Europe/Berlin", {"format": "%Y-%m-%d %H:%M:%S Europe/Berlin", "zone": "Europe/Berlin"}, "04:00:00"),
        ("UTC+2", {"format": "%Y-%m-%d %H:%M:%S UTC+2", "zone": "Etc/GMT-2"}, "04:00:00"),
        ("-05", {"format": "%Y-%m-%d %H:%M:%S -05", "zone": "Etc/GMT+5"}, "11:00:00"),
        ("EXT", {"zone": "UTC"}, "06:00:00"),
    ],
)
def test_zone_next_to_the_time_belongs_to_it(
    tmp_path: Path, zone: str, declared: dict[str, str], first: str
) -> None:
    actual = drafted(tmp_path, pairs("06:00:{n:02}", zone))
    column = ["date", "time"] + ["tz"] * ("format" in declared)
    assert yaml.safe_load(actual.text)["time"] == {"column": column, **declared}
    assert (actual.times[0], actual.refused) == (f"2024-04-19T{first}.000", [])
    assert ("which zone these are in" in actual.text) == ("format" not in declared)


@pytest.mark.parametrize("end", [" Europe/Berlin", " [Europe/Berlin]"])
def test_zone_at_the_end_of_a_time_belongs_to_it(tmp_path: Path, end: str) -> None:
    lines = [json.dumps({"at": f"2024-05-06T10:00:{n:02}{end}", "n": n}) for n in range(20)]
    lines[19] = lines[19].replace("Berlin", "Lisbon")
    actual = drafted(tmp_path, lines)
    assert yaml.safe_load(actual.text)["time"] == {
        "column": "at", "format": f"%Y-%m-%dT%H:%M:%S{end}", "zone": "Europe/Berlin"
    }  # fmt: skip
    assert (actual.times[0], [reason for reason, _ in actual.refused]) == (
        "2024-05-06T08:00:00.000",
        ["bad_time"],
    )
    assert "lines with another zone than Europe/Berlin are rejected" in actual.text


@pytest.mark.parametrize(
    ("name", "zone", "first"),
    [
        ('"Date Time, GMT+02:00"', "Etc/GMT-2", "08:00:00"),
        ("Timestamp (UTC)", "UTC", "10:00:00"),
        ("time_utc", "UTC", "10:00:00"),
        ('"Date Time, GMT+05:30"', None, "10:00:00"),
        ("outcome", None, "10:00:00"),
    ],
)
def test_zone_in_the_name_of_a_time_is_its_zone(
    tmp_path: Path, name: str, zone: str | None, first: str
) -> None:
    actual = drafted(tmp_path, [f"{name},n", *(f"2024-05-06 10:00:{n:02},{n}" for n in range(20))], "a.csv")
    assert actual.times[0] == f"2024-05-06T{first}.000"
    assert yaml.safe_load(actual.text)["time"]["zone"] == (zone or "UTC")
    assert ("which zone these are in" in actual.text) == (zone is None)


@pytest.mark.parametrize(
    ("form", "odd"),
    [("2024 May 06 10:00:{n:02} CET: x", True), ("2024 Jan 06 10:00:{n:02} CET: x", False)],
)
def test_letters_of_winter_in_summer_are_a_question(tmp_path: Path, form: str, odd: bool) -> None:
    text = drafted(tmp_path, [f"{form.format(n=n)} {n}" for n in range(20)]).text
    assert ("?: the clocks of Europe/Berlin do not show CET at these times" in text) == odd


def test_line_of_another_zone_is_rejected_and_not_misread(tmp_path: Path) -> None:
    lines = pairs("06:00:{n:02}", "Europe/Berlin")
    text = drafted(tmp_path, lines).text
    stream = parse(yaml.safe_load(text))
    (tmp_path / "a.log").write_text("\n".join([*lines, lines[0].replace("Berlin", "Lisbon")]))
    from transom.cli.adhoc_files import scan_file

    actual = scan_file(stream, tmp_path / "a.log")
    assert (actual.events, dict(actual.reasons)) == (20, {"bad_time": 1})


@pytest.mark.parametrize(("name", "beside"), [("utc_offset", False), ("shift", True), ("shift", False)])
def test_offset_in_another_field_is_recognised_by_name_or_position(
    tmp_path: Path, name: str, beside: bool
) -> None:
    def record(n: int) -> dict[str, Any]:
        fields = {"time": f"2024-04-19 06:00:{n:02}", **({} if beside else {"a": f"x{n % 3}"})}
        return fields | {name: "+02:00", "n": n}

    actual = drafted(tmp_path, [json.dumps(record(n)) for n in range(20)])
    selected = beside or name != "shift"
    assert actual.times[0] == f"2024-04-19T{'04' if selected else '06'}:00:00.000"
    assert (name in actual.stream.columns) != selected


def test_pairs_with_single_quotes_are_read(tmp_path: Path) -> None:
    lines = [
        f"time='2024-05-06 10:00:{n:02}' user='anna b' what='said \\'it\\' {n}' n={n}" for n in range(20)
    ]
    actual = drafted(tmp_path, lines)
    assert (actual.stream.source.format, dict(actual.stream.source.options)) == ("kv", {"quote": "'"})
    assert (actual.times[1], actual.column("user")[1], actual.refused) == (
        "2024-05-06T10:00:01.000",
        "anna b",
        [],
    )
    assert actual.column("what")[1] == "said 'it' 1"


AUDIT = [
    f"type={kind} msg=audit(16811601{n:02}.534:{3900 + n}): {rest}"
    for n in range(20)
    for kind, rest in (
        ("SYSCALL", f'arch=c000003e syscall=59 success=yes ppid={n} comm="ls" key=(null)'),
        ("CWD", 'cwd="/root"'),
        ("PROCTITLE", "proctitle=6C73"),
    )
]


@pytest.mark.parametrize(
    ("lines", "first", "serial"),
    [
        (AUDIT, "2023-04-10T20:55:00.534", 3901),
        ([f"at<2024-05-06T10:00:{n:02}Z>: it took {n}" for n in range(20)], "2024-05-06T10:00:00.000", None),
        ([f"id=7.1714990000/{n}/3 it took {n}" for n in range(20)], None, None),
    ],
)
def test_time_inside_a_value_is_found(
    tmp_path: Path, lines: list[str], first: str | None, serial: int | None
) -> None:
    if first is None:
        (tmp_path / "a.log").write_text("".join(f"{line}\n" for line in lines))
        assert draft([read_sample(tmp_path / "a.log")]).untimed
        return
    actual = drafted(tmp_path, lines)
    assert (actual.times[0], len(actual.events), actual.refused) == (first, len(lines), [])
    if serial is not None:
        assert (actual.column("serial")[3], actual.column("type")[:3]) == (
            serial,
            ["SYSCALL", "CWD", "PROCTITLE"],
        )
        assert actual.column("cwd")[1] == "/root"


def test_field_with_several_zones_is_reported_with_the_zone(tmp_path: Path) -> None:
    zones = ("Europe/Berlin", "America/New_York")
    lines = ["at,zone,n", *(f"2024-05-06 10:00:{n:02},{zones[n % 2]},{n}" for n in range(20))]
    text = drafted(tmp_path, lines).text
    assert "?: zone has the zone of each, America/New_York, Europe/Berlin, and only one can be" in text


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        # klog's date has no year, and a process id is no date.
        ("I0506 10:00:{n:02}.123456   1234 server.go:55] up", "no year is found for the times in time (0506"),
        ("10:00:{n:02}.123456 1234 web0", "no date is found for the times in time (10:00:00.123456)"),
        ("10:00:{n:02}.123456 121212 web0", "no date is found for the times in time (10:00:00.123456)"),
        # Which half of the day?
        ("web0 10:00:{n:02} PM web1", "no date is found for the times in time (10:00:00 PM)"),
        ("2024-05-06 22:00:{n:02} PM web1", "2024-05-06 22:00:00 PM is a time of an unknown form"),
        ("2024-05-06 10::00:{n:02} PM web1", "no field looks like a time"),
    ],
)
def test_no_part_of_a_time_is_invented_or_dropped(tmp_path: Path, before: str, reason: str) -> None:
    file = tmp_path / "a.log"
    file.write_text("".join(f"{before.format(n=n)} x{n}\n" for n in range(20)))
    text = draft([read_sample(file)]).text
    assert f"# time: ?: {reason}" in text
    with pytest.raises(SpecificationError, match="time: is required"):
        parse(yaml.safe_load(text))


def test_year_of_klog_comes_from_the_file_name(tmp_path: Path) -> None:
    lines = [f"I0506 10:00:{n:02}.123456   1234 server.go:55] up {n}" for n in range(20)]
    assert drafted(tmp_path, lines, "k.2024-05-06.log").times[0] == "2024-05-06T10:00:00.123"


def test_labels_separated_by_tabs_are_pairs(tmp_path: Path) -> None:
    lines = [f"time:2024-05-06T10:00:{n:02}Z\thost:web{n % 2}\turi:/a b:{n}\tn:{n}" for n in range(20)]
    actual = drafted(tmp_path, lines)
    assert (actual.times[0], actual.refused) == ("2024-05-06T10:00:00.000", [])
    assert (actual.column("host")[1], actual.column("uri")[3]) == ("web1", "/a b:3")


@pytest.mark.parametrize("sign", [",", "."])
def test_decimal_comma_of_a_time_is_no_delimiter(tmp_path: Path, sign: str) -> None:
    lines = [f"2024-05-06 10:00:{n:02}{sign}500 INFO web{n % 3} done, user=a, x{n}" for n in range(20)]
    actual = drafted(tmp_path, lines)
    assert (actual.stream.source.format, actual.times[0]) == ("regex", "2024-05-06T10:00:00.500")


def test_single_json_lines_among_others_are_accepted(tmp_path: Path) -> None:
    lines = [f'2024-05-06 10:00:{n:02} INFO {{"a":{n}}}' for n in range(20)]
    actual = drafted(tmp_path, [*lines, '{"a":99}'])
    assert (len(actual.events), actual.refused) == (20, [("no_match", '{"a":99}')])


@pytest.mark.parametrize("day", ["06", "07"])
def test_year_comes_from_a_name_with_the_date_of_lines_or_rotation(tmp_path: Path, day: str) -> None:
    lines = [f"May 06 {hour:02}:00:00 web1 sshd[12]: session {hour} opened" for hour in range(24)]
    result = drafted(tmp_path, lines, f"app.2024-05-{day}.log")
    assert "path: app.{year}-*-*.log\n" in result.text.replace('"', "")
    assert (result.times[0], result.refused) == ("2024-05-06T00:00:00.000", [])
