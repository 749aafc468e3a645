"""Drafts of pairs: signs between them, single quotes, pairs inside of values; and times inside of values."""

import json
from pathlib import Path

import pytest

from tests.cli.init.drafted_logs import drafted, home
from transom.cli.init.draft import draft
from transom.cli.log_sample import read_sample

__all__ = ["home"]


@pytest.mark.parametrize("sign", [",", ";", "|"])
@pytest.mark.parametrize("after", ["", " "])
@pytest.mark.parametrize("quote", ["'", '"', ""])
def test_sign_between_pairs_is_part_of_no_value(tmp_path: Path, sign: str, after: str, quote: str) -> None:
    user = f"{quote}anna{sign * (quote != '')} b{quote}"
    lines = [
        f"{sign}{after}".join([
            f"time={quote}2024-05-06T10:00:{n:02}Z{quote}", f"user={user}", f"n={quote}{n}{quote}"
        ])
        for n in range(20)
    ]  # fmt: skip
    actual = drafted(tmp_path, lines)
    assert actual.stream.source.options == {"separator": sign} | ({"quote": "'"} if quote == "'" else {})
    assert (actual.times[1], actual.refused) == ("2024-05-06T10:00:01.000", [])
    assert (actual.column("user")[1], actual.column("n")[1]) == (user.strip(quote or " "), 1)


def test_single_quotes_in_a_line_of_words_surround_one_value(tmp_path: Path) -> None:
    users = ("anna", "anna b", "anna b c")
    lines = [
        f"2024-05-06T10:00:{n:02}Z INFO it's 'GET /a b', {n}, user='{users[n % 3]}' ok" for n in range(20)
    ]
    actual = drafted(tmp_path, lines)
    assert (len(actual.events), actual.refused) == (20, [])
    assert actual.column("user")[:3] == [*users]
    assert [*actual.events[1].values()][2:5] == ["it's", "GET /a b", 1]


AUDIT = [
    'pid={n} uid=0 msg=\'op=login id=7 exe="/usr/sbin/sshd" addr=1.2.3.4 res=failed\'\x1dUID="root" ID="eva"',
    'syscall=59 success=yes exit={n} comm="it\'s" key=(null)\x1dSYSCALL=execve',
]
"""Records of an audit log that has names for numbers: pairs in a value, and a second group of pairs."""


def test_pairs_of_an_audit_log_are_read_in_values_and_groups(tmp_path: Path) -> None:
    lines = [
        f"type={kind} msg=audit(16811601{n:02}.534:{n}): {AUDIT[kind == 'SYSCALL'].format(n=n)}"
        for n in range(20)
        for kind in ("USER_LOGIN", "SYSCALL")
    ]
    actual = drafted(tmp_path, lines)
    assert actual.stream.source.options["separator"] == " \t'\x1d"
    assert (len(actual.events), actual.refused) == (40, [])
    login, call = actual.events[2:4]
    required = {
        "serial": 1, "pid": 1, "op": "login", "id": 7, "exe": "/usr/sbin/sshd", "res": "failed",
        "uid": 0, "uid_2": "root", "id_2": "eva",
    }  # fmt: skip
    assert login | required == login
    required = {"serial": 1, "syscall": 59, "exit": 1, "comm": "it's", "key": None, "syscall_2": "execve"}
    assert call | required == call


@pytest.mark.parametrize(
    ("name", "line", "first", "sure"),
    [
        ("a.json", '{{"id": "audit(17149896{n:02}.123:{n})"}}', "2024-05-06T10:00:00.123", True),
        ("a.json", '{{"id": "put/2024-05-06T10:00:{n:02}Z/x{n}"}}', "2024-05-06T10:00:00.000", False),
        (
            "a.json",
            '{{"id": "2024-05-06T10:00:{n:02}.{n}+02:00[Europe/Berlin]"}}',
            "2024-05-06T08:00:00.000",
            False,
        ),
        ("a.csv", "of(2024-05-06T10:00:{n:02}Z),{n},x", "2024-05-06T10:00:00.000", False),
    ],
)
def test_time_inside_a_value_of_any_format_is_found(
    tmp_path: Path, name: str, line: str, first: str, sure: bool
) -> None:
    lines = [line.format(n=n) for n in range(20)]
    actual = drafted(tmp_path, ["id,n,word", *lines] if name == "a.csv" else lines, name)
    assert (actual.times[0], len(actual.events), actual.refused) == (first, 20, [])
    # A time in another text may be that of something else.
    assert ("?: id is taken apart by a pattern" in actual.text) != sure


@pytest.mark.parametrize("value", ["o-171498960{n}", "o-171498960{n}000", "{n}-2024-05-06"])
def test_numbers_and_dates_inside_values_are_no_times(tmp_path: Path, value: str) -> None:
    file = tmp_path / "a.json"
    file.write_text("".join(f"{json.dumps({'id': value.format(n=n)})}\n" for n in range(10)))
    assert draft([read_sample(file)]).untimed == "no field looks like a time"
