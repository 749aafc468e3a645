"""External log formats: the draft reads the lines, or a message tells the user what to do."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import Result

from tests.cli.init.drafted_logs import drafted, home, refusal
from transom.cli.adhoc_files import scan_file
from transom.stream import load, parse

__all__ = ["home"]


def test_epoch_times_with_three_decimals_are_read(tmp_path: Path) -> None:
    actual = drafted(tmp_path, [f"17000000{n:02}.123 web{n % 2} {n}" for n in range(20)])
    assert actual.times[:2] == ["2023-11-14T22:13:20.123", "2023-11-14T22:13:21.123"]
    assert (actual.column("field_2")[:2], actual.column("field_3")[:2]) == (["web0", "web1"], [0, 1])


def test_web_server_log_with_a_leading_virtual_host_is_read(tmp_path: Path) -> None:
    lines = [
        f"www.example.org:443 192.0.2.{n} - {'-' if n else 'anna b'} [06/May/2024:07:00:{n:02} +0200] "
        f'"GET /{n} HTTP/1.1" 200 {n or "-"} "-" "say \\"hi\\" {n}"'
        for n in range(10)
    ]
    actual = drafted(tmp_path, [*lines, 'h 192.0.2.1 - - [06/May/2024:07:00:59 +0200] "-" 408 3'])
    assert (actual.stream.source.format, actual.refused) == ("regex", [])
    assert actual.column("host") == ["www.example.org"] * 10 + ["h"]
    assert actual.column("port") == [443] * 10 + [None]
    assert (actual.column("client")[1], actual.column("path")[1]) == ("192.0.2.1", "/1")
    assert actual.column("user")[:2] == ["anna b", None]
    assert actual.column("bytes")[:2] == [None, 1]
    assert actual.column("agent")[1:2] + actual.column("agent")[-1:] == ['say \\"hi\\" 1', None]
    assert actual.times[-1] == "2024-05-06T05:00:59.000"
    plain = drafted(tmp_path, [line.partition(" ")[2] for line in lines])
    assert (plain.stream.preset, len(plain.events)) == ("apache/combined", 10)


def test_single_dash_is_a_field_without_a_value(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    lines = [
        f"2024-05-01T10:{n:02}:00Z - GET {'-' if n % 7 else n} {'[a b]' if n % 3 else '-'}" for n in range(40)
    ]
    actual = drafted(tmp_path, lines)
    assert actual.refused == []
    assert actual.column("field_2") == [None] * 40
    assert actual.column("field_4")[:8] == [0, None, None, None, None, None, None, 7]
    assert actual.column("field_5")[:3] == [None, "a b", "a b"]
    log.write_text("2024-05-01T11:00:00Z anna GET 7 -\n")
    assert scan_file(actual.stream, log).events == 1


@pytest.mark.parametrize("form", [" {} GET {}", "{} GET {} ", "{}  GET {}", "{}\tGET {}", "{} GET\t {}\t"])
def test_blanks_around_and_between_texts_are_read(tmp_path: Path, form: str) -> None:
    lines = [(form if n % 2 else "{} GET {}").format(f"2024-05-01T10:00:{n:02}Z", n) for n in range(40)]
    actual = drafted(tmp_path, lines)
    assert actual.refused == []
    assert [(event["field_2"], event["field_3"]) for event in actual.events] == [
        ("GET", n) for n in range(40)
    ]


def test_constant_sign_is_no_field_and_dashes_are_one(tmp_path: Path) -> None:
    actual = drafted(tmp_path, [f"2024-05-01T10:00:{n:02}Z ---- => {n}" for n in range(20)])
    assert actual.stream.source.options == {
        "pattern": "(?P<time>[^ ]+) (?P<field_2>[^ ]+) => (?P<field_4>[^ ]+)"
    }
    assert actual.column("field_2")[0] == "----"


@pytest.mark.parametrize("sign", [" ", "\t"])
def test_w3c_extended_logs_are_read(tmp_path: Path, sign: str) -> None:
    head = ["#Software: IIS 10.0", "#Version: 1.0", "#Date: 2024-05-01 00:00:00"]
    names = "#Fields: date time c-ip cs(User-Agent) cs-username sc-status time-taken"
    rows = [
        sign.join(["2024-05-01", f"10:00:{n:02}", f"192.0.2.{n}", "a+b", "-", "200", str(n)])
        for n in range(20)
    ]
    actual = drafted(tmp_path, [*head, names, *rows[:10], *head, names, *rows[10:]])
    assert (len(actual.events), actual.header_lines, actual.refused) == (20, 8, [])
    assert actual.times[1] == "2024-05-01T10:00:01.000"
    assert [(name, actual.column(name)[1]) for name in actual.stream.columns] == [
        ("c_ip", "192.0.2.1"),
        ("cs_user_agent", "a+b"),
        ("cs_username", None),
        ("sc_status", 200),
        ("time_taken", 1),
    ]
    assert "time: {column: [date, time], zone: UTC}  # 2024-05-01 10:00:00\n" in actual.text


def test_zone_is_requested_in_one_place(tmp_path: Path) -> None:
    actual = drafted(
        tmp_path, ["at,host", *(f"2024-05-01 10:00:{n:02},h{n % 2}" for n in range(20))], "a.csv"
    )
    assert actual.text.count("zone") == 2  # zone: UTC, and what to write there
    assert "time: {column: at, zone: UTC}  # 2024-05-01 10:00:00; ?: which zone these are in" in actual.text
    assert list(actual.stream.columns) == ["host"]


@pytest.mark.parametrize(
    ("before", "time", "pid"),
    [("", "2024-01-01T00:00:01.000", None), ("[pid  12] 1700000001.500000 ", "2023-11-14T22:13:21.500", 12)],
)
def test_strace_log_is_read(tmp_path: Path, before: str, time: str, pid: int | None) -> None:
    lines = [f'{before}openat(AT_FDCWD, "/etc/a = {n}", O_RDONLY) = {n}' for n in range(20)]
    actual = drafted(tmp_path, [*lines, "+++ exited with 0 +++"])
    assert actual.refused == [("no_match", "+++ exited with 0 +++")]
    assert (actual.column("call")[3], actual.column("arguments")[3], actual.column("return")[3]) == (
        "openat",
        'AT_FDCWD, "/etc/a = 3", O_RDONLY',
        "3",
    )
    assert (actual.times[1], actual.events[1].get("pid")) == (time, pid)
    assert "# strace's output: its arguments are one text, and lines of signals, exits and" in actual.text


def test_lines_of_unknown_format_are_refused_with_tried_formats_and_advice(tmp_path: Path) -> None:
    text = refusal(tmp_path, 'alpha [b] "c"\n' + 'x=1, 2\n"quoted" a b\n###\n{} {}\n[] 1 2 3\n' * 3)
    assert text == (
        "has an unknown form. Tried: Zeek, W3C extended, JSON, a container's log, CEF, Apache, "
        "a web server's error log, JSON in a text, LTSV, system calls, strace, key=value, CSV, a pattern; "
        "nearest: a pattern, 3 of 16 lines. If its lines have a form of their "
        "own, write `format: regex`, with a pattern that takes a whole line and names its fields. This one "
        'takes the first line:\n  alpha [b] "c"\n'
        '  options: {pattern: "(?P<field_1>[^ ]+) \\\\[(?P<field_2>[^\\\\]]*)'
        '\\\\] \\"(?P<field_3>[^\\"]*)\\""}'
    )


def test_cef_after_syslog_is_read(tmp_path: Path) -> None:
    lines = [
        f"Nov 22 06:55:{n:02} fw{n % 2} CEF:0|Sec|Guard|1.0|{n}|worm \\| stopped|9|rt={1700000000123 + n} "
        f"src=10.0.0.{n} {'spt=80 ' if n % 2 else ''}msg=a \\= b src of {n} act=blocked"
        for n in range(20)
    ]
    actual = drafted(tmp_path, lines)
    assert actual.refused == []
    assert actual.times[1] == "2023-11-14T22:13:20.124"
    required = {
        "field_4": "fw1", "vendor": "Sec", "product_version": 1.0, "event_class": 1, "severity": 9,
        "event": "worm \\| stopped", "src": "10.0.0.1", "spt": 80, "act": "blocked",
        "extension": "rt=1700000000124 src=10.0.0.1 spt=80 msg=a \\= b src of 1 act=blocked",
    }  # fmt: skip
    assert {name: actual.events[1][name] for name in required} == required
    assert actual.events[0]["spt"] is None


def test_cef_alone_with_textual_times_is_read(tmp_path: Path) -> None:
    lines = [
        f"CEF:0|Sec|Guard|1.0|7|worm|Low|src=10.0.0.{n} rt=Nov 22 2023 06:55:{n:02} msg=seen by {n}"
        for n in range(20)
    ]
    actual = drafted(tmp_path, lines)
    assert (actual.times[3], actual.events[3]["src"], actual.refused) == (
        "2023-11-22T06:55:03.000",
        "10.0.0.3",
        [],
    )


def test_stack_trace_between_lines_is_rejected_and_the_rest_is_read(tmp_path: Path) -> None:
    lines = []
    for n in range(20):
        lines.append(f"2024-05-01 10:00:{n:02},123 ERROR [main] com.Foo - {'it ' * (n % 3)}failed")
        lines += ["java.lang.Error: no", "\tat com.Foo.x(Foo.java:1)"] if n % 2 else []
    actual = drafted(tmp_path, lines)
    assert (len(actual.events), len(actual.refused)) == (20, 20)
    assert actual.times[1] == "2024-05-01T10:00:01.123"
    assert "lines that do not begin with a time, as of a stack trace, are rejected" in actual.text
    # Lines that the user has not reviewed must not pass.
    assert "# ?: 20 of 40 lines are rejected here: no match: left over: " in actual.text
    assert "rejected_share" not in actual.stream.checks
    assert (
        ".\n# Such a file is quarantined until its lines are read, or until you allow so many:\n"
        "#   checks: {rejected_share: {at_most: 0.76}}\n"
    ) in actual.text


def test_written_draft_is_named_by_its_file_and_rejected_lines_are_printed(
    monkeypatch: pytest.MonkeyPatch, run: Callable[..., Result], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", ["transom"])
    log, output = tmp_path / "a b.log", tmp_path / "My-web.yaml"
    lines = [f"2024-05-01T10:{n // 60:02}:{n % 60:02}Z host {n}" for n in range(120)]
    odd = ["odd\tone", "two", *(f"\tat com.Foo{n}$Bar.run(Foo.java:{n})" for n in range(3)), "99:99 four"]
    log.write_text("\n".join([*lines, *odd, "five of", "six-6", "[7]"]))
    result = run("init", log, "--output", output)
    assert (result.exit_code, result.stdout) == (
        0,
        f"{output}: written. Look at its question marks, then:\n"
        f"  transom check {output}\n  transom try {output} '{log}'\n",
    )
    assert result.stderr == (
        "transom: 9 of 129 lines are rejected by this draft:\n"
        "  no match: left over: nothing; expected \\s+ (2 such lines)\n    odd\\tone\n"
        "  no match: left over: nothing; expected \\s+\n    two\n"
        "  no match: left over: nothing; expected \\s+ (3 such lines)\n"
        "    \\tat com.Foo0$Bar.run(Foo.java:0)\n"
        "  no match: left over: nothing; expected \\s+\n    99:99 four\n"
        "  no match: left over: nothing; expected \\s+\n    six-6\n"
        "  and 1 more\n"
        "  Lines that begin with a blank or have no time seem to be headers, or to continue the line before "
        "them.\n  An event is one line, so a run rejects them, too.\n"
        "  In csv, regex and kv, `options: {comment: TEXT}` skips lines that begin with TEXT.\n"
    )
    assert load(output).name == "my_web"
    assert load(output).time is not None
    named = run("init", log, "--output", tmp_path / "other.yaml", "--name", "web")
    assert (named.exit_code, load(tmp_path / "other.yaml").name) == (0, "web")


def test_differing_files_of_one_log_have_one_pattern(run: Callable[..., Result], tmp_path: Path) -> None:
    one, other = tmp_path / "a.1.log", tmp_path / "a.2.log"
    one.write_text("".join(f"2024-05-01T10:00:{n:02}Z GET {n} -\n" for n in range(40)))
    other.write_text("".join(f'2024-05-01T11:00:{n:02}Z GET {n} "{n} ms"\n' for n in range(40)))
    result = run("init", one, other)
    assert (result.exit_code, result.stderr) == (0, "")
    assert dict(parse(yaml.safe_load(result.stdout)).source.options) == {
        "pattern": '(?P<time>[^ ]+) (?P<field_2>[^ ]+) (?P<field_3>[^ ]+) (?:"(?P<field_4>[^"]*)"|-)'
    }
