"""Lines whose times lack a year or a date: it comes from the name of their file."""

from pathlib import Path

import pytest

from tests.cli.init.drafted_logs import drafted, home
from transom.cli.adhoc_files import scan_file
from transom.cli.arguments import UsageError

__all__ = ["home"]

SYSLOG = [
    f"Nov {day:2} 06:55:{n:02} fw{n % 2} {f'sshd[{n}]' if n % 3 else 'kernel'}: took {'x ' * (n % 4)}{n}"
    for day in (2, 22)
    for n in range(12)
]


def test_syslog_takes_its_year_from_the_file_name(tmp_path: Path) -> None:
    actual = drafted(tmp_path, SYSLOG, "syslog-2023-11-22.log")
    assert actual.stream.source.path == "syslog-{year}-*-*.log"
    assert actual.stream.time is not None
    assert (actual.stream.time.column, actual.stream.time.format) == (("year", "time"), "%Y %b %d %H:%M:%S")
    assert (actual.times[0], actual.times[-1], actual.refused) == (
        "2023-11-02T06:55:00.000",
        "2023-11-22T06:55:11.000",
        [],
    )
    assert actual.column("process")[:2] == ["kernel", "sshd"]
    assert actual.column("pid")[:2] == [None, 1]
    assert actual.column("message")[1] == "took x 1"
    assert "?: a file must not go over a new year" in actual.text
    assert drafted(tmp_path, SYSLOG, "2023/11/22/syslog").stream.source.path == "{year}/*/*/syslog"


@pytest.mark.parametrize(
    ("name", "start", "advice"),
    [
        ("syslog", "2024-01-01T00:00:00.000", "syslog.2024-05-31"),
        ("syslog-20231122", "2023-11-22T00:00:00.000", "syslog-2023-11-22"),
    ],
)
def test_syslog_without_a_year_is_reported(tmp_path: Path, name: str, start: str, advice: str) -> None:
    actual = drafted(tmp_path, SYSLOG, name)
    assert (actual.times[0], len(actual.events)) == (start, len(SYSLOG))
    assert actual.column("time")[0] == "Nov  2 06:55:00"
    assert (
        "# time: ?: no year is found for the times in time (Nov 2 06:55:00), so they are not read; "
        f"land the files under names with the day, such as {advice}, and draft it again: the "
        "year is then taken from there\n"
    ) in actual.text


@pytest.mark.parametrize(
    ("name", "path", "column"),
    [
        ("app.2024-05-01.log", "app.{date}.log", ("date", "time")),
        ("app-20240501.log", "app-{date}.log", ("date", "time")),
        ("2024/05/01/app.log", "{year}/{month}/{day}/app.log", ("year", "month", "day", "time")),
    ],
)
def test_times_of_day_take_their_date_from_the_file_name(
    tmp_path: Path, name: str, path: str, column: tuple[str, ...]
) -> None:
    lines = [f"06:{n:02}:22,500 INFO [main] com.Foo - it is {'so ' * (n % 4)}{n}" for n in range(20)]
    actual = drafted(tmp_path, lines, name)
    assert actual.stream.time is not None
    assert (actual.stream.source.path, actual.stream.time.column) == (path, column)
    assert (actual.times[1], actual.refused) == ("2024-05-01T06:01:22.500", [])
    assert "?: a file must not go over midnight\n" in actual.text


def test_try_requires_the_date_of_its_times(tmp_path: Path) -> None:
    stream = drafted(tmp_path, [f"06:{n:02}:22 a {n}" for n in range(20)], "app.2024-05-01.log").stream
    assert scan_file(stream, tmp_path / "app.2024-05-01.log").events == 20
    other = tmp_path / "other.log"
    other.write_text("06:00:00 a 1\n")
    with pytest.raises(UsageError) as error:
        scan_file(stream, other)
    assert str(error.value) == (
        f"{other}: must be named as in source.path, app.{{date}}.log, as times consist of date in its name"
    )
