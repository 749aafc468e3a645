"""External times, types and texts: how a draft interprets them, and its comments."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import Result

from tests.cli.init.drafted_logs import decided, drafted, home, record, refusal
from tests.support.examples import rare_case
from transom.cli.arguments import UsageError
from transom.cli.init.detect import Unknown, recognise
from transom.cli.init.draft import draft
from transom.cli.init.log_format import NearMiss
from transom.cli.log_sample import LogSample
from transom.stream import parse

__all__ = ["home"]

PAIRS = 'level=info client=10.0.0.{n} msg="a b {n}"'


@pytest.mark.parametrize(
    ("before", "name", "lead", "column", "first"),
    [
        ("2024-03-01T10:00:{n:02}Z ", "a.log", ["time"], ("time",), {}),
        (
            "2024-03-01 10:00:{n:02} h{n} ",
            "a.log",
            ["date", "time", "field_3"],
            ("date", "time"),
            {"field_3": "h1"},
        ),
        (
            "<30>1 2024-03-01T10:00:{n:02}Z 10.0.0.9 app - request=4f1a9c0d7e path=/index.html ",
            "a.log",
            ["field_1", "time", "ip", "field_4", "field_5"],
            ("time",),
            {"ip": "10.0.0.9", "field_4": "app"},
        ),
        ("2024-03-01T10:00:{n:02}Z time=no ", "a.log", ["lead_time"], ("lead_time",), {"time": "no"}),
        (
            "Mar  1 10:00:{n:02} fw kernel: [{n}.5] [UFW BLOCK] IN=eth0 OUT= MAC=aa:bb DST=192.0.2.1 LEN=60 "
            "TTL=64 DF PROTO=TCP ",
            "ufw.2024-03-01.log",
            ["month", "day", "time", "host", "process"],
            ("year", "month", "day", "time"),
            {"host": "fw", "process": "kernel:", "in_": "eth0"},
        ),
        (
            "Mar  1 10:00:{n:02} fw date=2024-03-01 time=10:00:{n:02} ",
            "a.log",
            ["month", "day", "lead_time", "host"],
            ("date", "time"),
            {"host": "fw"},
        ),
    ],
)
def test_time_before_pairs_is_read(
    tmp_path: Path, before: str, name: str, lead: list[str], column: tuple[str, ...], first: dict[str, str]
) -> None:
    actual = drafted(tmp_path, [(before + PAIRS).format(n=n) for n in range(20)], name)
    assert actual.stream.time is not None
    assert (actual.stream.source.format, actual.stream.source.options) == ("kv", {"lead": lead})
    assert (actual.stream.time.column, actual.refused) == (column, [])
    assert actual.times == [f"2024-03-01T10:00:{n:02}.000" for n in range(20)]
    required = {"level_": "info", "client": "10.0.0.1", "msg": "a b 1", **first}
    assert {field: actual.events[1][field] for field in required} == required


def test_time_before_pairs_separated_by_commas_is_read(tmp_path: Path) -> None:
    lines = [f"2024-03-01 10:00:{n:02}, level=info, client=10.0.0.{n}, n={n}" for n in range(20)]
    actual = drafted(tmp_path, lines)
    assert actual.stream.source.options == {"separator": ",", "lead": ["time"]}
    assert (actual.times[1], actual.column("n")[1]) == ("2024-03-01T10:00:01.000", 1)


def test_nanoseconds_before_pairs_are_the_time(tmp_path: Path) -> None:
    actual = drafted(tmp_path, [f"{1700000000123456789 + n} {PAIRS.format(n=n)}" for n in range(20)])
    assert actual.stream.source.options == {"lead": ["time"]}
    assert actual.times[1] == "2023-11-14T22:13:20.123"


def test_bracketed_time_before_pairs_is_read_by_a_pattern(tmp_path: Path) -> None:
    actual = drafted(tmp_path, [f"[2024-03-01 10:00:{n:02}] {PAIRS.format(n=n)}" for n in range(20)])
    assert (actual.stream.source.format, actual.times[1]) == ("regex", "2024-03-01T10:00:01.000")
    assert actual.events[1]["client"] == "10.0.0.1"


def test_one_odd_value_does_not_change_the_type_of_a_column(tmp_path: Path) -> None:
    rows = [f"2024-05-01T10:{n // 60:02}:{n % 60:02}Z,h{n % 3},{n}.5" for n in range(300)]
    rows[7], rows[9] = "kaputt,h1,7.5", "2024-05-01T10:00:09Z,h0,ERR"
    actual = drafted(tmp_path, ["at,host,took", *rows], "a.csv")
    assert actual.refused == [("bad_time", rows[7]), ("bad_type", rows[9])]
    assert len(actual.events) == 298
    assert actual.stream.columns["took"].type == "number"
    assert "7.5, 0.5" not in actual.text
    assert "; ?: 99.66 % are numbers, lines with others are rejected\n" in actual.text
    assert "time: {column: at}  # 2024-05-01T10:00:00Z; ?: 99.66 % are such times, lines with" in actual.text


def test_json_numbers_keep_their_type_if_one_is_a_text(tmp_path: Path) -> None:
    records = [record(n) | {"n": "ERR" if n == 3 else n} for n in range(30)]
    actual = drafted(tmp_path, [json.dumps(one) for one in records])
    assert [reason for reason, _ in actual.refused] == ["bad_type"]
    assert actual.column("n")[:4] == [0, 1, 2, 4]


def test_date_and_time_are_found_under_any_names(tmp_path: Path) -> None:
    lines = ["Datum;Uhrzeit;n", *(f"0{n % 9 + 1}.05.2024;10:00:{n:02};{n}" for n in range(20))]
    actual = drafted(tmp_path, lines, "a.csv")
    assert actual.stream.time is not None
    assert (actual.stream.time.column, actual.stream.time.format) == (
        ("Datum", "Uhrzeit"),
        "%d.%m.%Y %H:%M:%S",
    )
    assert actual.times[1] == "2024-05-02T10:00:01.000"


@pytest.mark.parametrize(("digits", "form"), [("123456", "epoch_us"), ("123456789", "epoch_ns")])
def test_micro_and_nanoseconds_are_read(
    run: Callable[..., Result], tmp_path: Path, digits: str, form: str
) -> None:
    log = tmp_path / "a.csv"
    log.write_text("ts,host\n" + "".join(f"17000000{n:02}{digits},h{n % 2}\n" for n in range(20)))
    result = run("init", log)
    assert (result.exit_code, result.stderr) == (0, "")
    time = parse(yaml.safe_load(result.stdout)).time
    assert time is not None
    assert (time.format, time.lines) == (form, None)


def test_sparse_column_is_not_aggregated_if_another_is(tmp_path: Path) -> None:
    lines = [
        json.dumps(record(n) | {"took": n / 4} | ({"bytes": n} if n % 5 == 0 else {})) for n in range(40)
    ]
    assert drafted(tmp_path, lines).stream.aggregates["activity"].measures.keys() == {"n", "mean_took"}
    lines = [json.dumps(record(n) | {"took": n / 4} | ({"bytes": n} if n != 5 else {})) for n in range(40)]
    assert drafted(tmp_path, lines).stream.aggregates["activity"].measures.keys() == {"n", "total_bytes"}


def test_path_without_a_time_comes_with_advice(tmp_path: Path) -> None:
    lines = [f"2024-05-01T10:00:{n:02}Z host {n}" for n in range(20)]
    note = (
        "# The path has no time, which is enough for `transom try`. A DAG needs a file for each hour, with\n"
        "# the hour in its name, such as landing/access/%Y-%m-%d/access.%H.log. A file that is rotated has\n"
        "# another text under the same name, which is a conflict.\n"
    )
    assert f"name: access\n{note}source:\n" in drafted(tmp_path, lines, "access.log").text
    assert note not in drafted(tmp_path, lines, "access.2024-05-01.10.log").text


def test_lines_in_another_encoding_are_rejected_and_reported(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    log = tmp_path / "a.log"
    lines = [f"2024-05-01T10:00:{n:02}Z {'höst' if n == 7 else 'host'} {n}\n" for n in range(50)]
    log.write_text("".join(lines), encoding="latin-1")
    result = run("init", log)
    assert (result.exit_code, result.stderr) == (
        0,
        "transom: 1 of 50 lines is rejected by this draft:\n"
        "  not_utf8\n    2024-05-01T10:00:07Z h\\xf6st 7\n"
        f"transom: {log}: must be text in UTF-8; 1 of 50 lines is not. If it is in ISO-8859-1, as it seems: "
        "iconv -f ISO-8859-1 -t UTF-8 FILE > NEW\n",
    )
    assert result.stdout.startswith("# Drafted from a.log: 50 lines, 49 events,\n")


def test_single_line_is_one_event(tmp_path: Path) -> None:
    actual = drafted(tmp_path, ["2024-05-01T10:00:00Z host 1"])
    assert actual.text.startswith("# Drafted from a.log: 1 line, 1 event,\n")


def test_quotes_after_a_backslash_belong_to_the_text(tmp_path: Path) -> None:
    lines = [f'2024-03-01T10:00:{n:02}.123456789Z stderr f "it \\"said\\" {n}" 7' for n in range(20)]
    actual = drafted(tmp_path, lines)
    assert (actual.refused, actual.column("field_4")[1]) == ([], 'it \\"said\\" 1')
    assert actual.times[1] == "2024-03-01T10:00:01.123"


def test_format_refused_despite_matching_lines_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = {"CSV": lambda lines: NearMiss(len(lines), "no column is a time"), "JSON": lambda _: NearMiss(0)}
    monkeypatch.setattr("transom.cli.init.detect.FORMS", forms)
    with pytest.raises(Unknown) as error:
        recognise(["a,b"] * 3)
    assert str(error.value).startswith(
        "has an unknown form. Tried: CSV, JSON; nearest: CSV, 3 of 3 lines, but no column is a time."
    )


def test_pattern_is_shown_only_if_it_matches_the_whole_first_line(tmp_path: Path) -> None:
    odd = "x=1, 2\n###\n{} {}\n[] 1 2 3\n" * 3
    wide = " ".join("abcdefghij"[n % 10] * 3 for n in range(80))
    assert refusal(tmp_path, f"{wide}\n{odd}").endswith(f"names its fields. The first line:\n  {wide[:300]}")


words = st.sampled_from(
    [
        "-", "a", "2024-05-01", "2024-05-01T10:00:00Z", "10:00:00", "Nov", "22", "7", "1,5",
        '"', '"a b"', "[x]",
        "[", "k=v", 'k="v w"', "sshd[1]:", "name:", "{}", '{"a":', "1}", "CEF:0|a|b|c|d|e|f|x=1", "=>", "#",
        "read(3)", "10.0.0.1", "GET / HTTP/1.1", "1700000000.123", "é", "|", "\t", ",", ";", "'", "(?P<a>b)",
        "\\", "%", "*", "null", "#Fields:", "  ",
    ]
)  # fmt: skip
lines = st.lists(words, min_size=1, max_size=8).flatmap(
    lambda row: st.sampled_from([" ", ",", ";", "\t", "|"]).map(lambda sign: sign.join(row))
)


@rare_case(3)
@given(
    st.lists(lines, min_size=1, max_size=6), st.integers(1, 4), st.sampled_from(["a.log", "a.2024-05-01.log"])
)
def test_any_lines_are_read_by_a_draft_or_refused_with_a_reason(
    some: list[str], times: int, name: str
) -> None:
    sample = LogSample(Path(name), tuple(some * times), True)
    try:
        computed = draft([sample])
    except UsageError:
        return
    assert parse(decided(computed.text)).name == "a"
    assert computed.trial.events.num_rows > 0


@pytest.mark.parametrize(
    ("months", "zone", "note", "first", "last"),
    [
        ({7: "UTC", 11: "UTC"}, "UTC", "", "2026-07-20T21:58:00.352", "2026-11-20T21:58:19.352"),
        (
            {7: "CEST", 11: "CET"},
            "Europe/Berlin",
            "; ?: other zones than Europe/Berlin have such letters, too",
            "2026-07-20T19:58:00.352",
            "2026-11-20T20:58:19.352",
        ),
    ],
)
def test_zone_letters_belong_to_the_time(
    tmp_path: Path, months: dict[int, str], zone: str, note: str, first: str, last: str
) -> None:
    actual = drafted(
        tmp_path,
        [
            f"2026-{month:02}-20 21:58:{n:02}.352 {letters} [{n}] a@b LOG:  it {'really ' * (n % 4)}took {n}"
            for month, letters in months.items()
            for n in range(20)
        ],
    )
    assert actual.stream.time is not None
    assert (actual.stream.time.format, actual.stream.time.zone) == ("%Y-%m-%d %H:%M:%S.%f %Z", zone)
    assert (actual.times[0], actual.times[-1], actual.refused) == (first, last, [])
    assert f"# 2026-07-20 21:58:00.352 {months[7]}{note}\n" in actual.text
    assert actual.stream.columns.keys() == {"pid", "field_5", "field_6", "message"}
    assert actual.stream.aggregates["activity"].measures.keys() == {"n"}


def test_letters_that_name_no_zone_do_not_belong_to_the_time(tmp_path: Path) -> None:
    actual = drafted(tmp_path, [f"2026-11-20 21:58:{n:02} XYZ {n}" for n in range(20)])
    assert actual.stream.time is not None
    assert (actual.stream.time.format, actual.column("field_3")[0]) == ("iso", "XYZ")


def test_large_numbers_are_times_by_name_or_as_the_only_candidate(tmp_path: Path) -> None:
    rows = [f"{1234567890 + n},{1714550400 + n},2024-05-06T10:00:{n:02}Z" for n in range(20)]
    several = drafted(tmp_path, ["disk_free,first_seen,logged", *rows], "a.csv")
    assert (several.times[1], several.column("disk_free")[1]) == ("2024-05-06T10:00:01.000", 1234567891)
    assert several.stream.columns["first_seen"].format == "epoch"
    assert "time: {column: logged}  # 2024-05-06T10:00:00Z; other times: first_seen\n" in several.text
    alone = drafted(tmp_path, ["sent,n", *(f"{1714550400 + n},{n}" for n in range(20))], "b.csv")
    assert alone.times[1] == "2024-05-01T08:00:01.000"
    assert "# 1714550400; ?: a time by its size alone\n" in alone.text


@pytest.mark.parametrize(
    ("name", "day"), [("a.csv", "2024-05-06,"), ("a.2024-05-06.csv", "")], ids=["beside", "in the name"]
)
def test_time_with_a_date_is_preferred_to_a_large_number(tmp_path: Path, name: str, day: str) -> None:
    rows = [f"{1234567890 + n},{day}10:00:{n:02}" for n in range(20)]
    actual = drafted(tmp_path, [f"disk_free,{day and 'day,'}clock", *rows], name)
    assert actual.times[1] == "2024-05-06T10:00:01.000"
    assert actual.column("disk_free")[1] == 1234567891


def test_possible_thousands_separator_leaves_a_text(tmp_path: Path) -> None:
    rows = [f"2024-05-06T10:00:{n:02}Z;1,{n:03}" for n in range(20)]
    actual = drafted(tmp_path, ["at;amount", *rows], "a.csv")
    assert actual.column("amount")[1] == "1,001"
    assert (
        "  amount: amount  # ?: text, as the comma in 1,000 may be a decimal one, or one of thousands\n"
        in actual.text
    )


@pytest.mark.parametrize("header", [["at,rule,n"], []])
def test_values_containing_another_delimiter_are_whole(tmp_path: Path, header: list[str]) -> None:
    rows = [f"2024-05-06T10:00:{n:02}Z,a;b;c;{n},{n}" for n in range(20)]
    actual = drafted(tmp_path, [*header, *rows], "a.csv")
    assert actual.times[1] == "2024-05-06T10:00:01.000"
    assert actual.events[1]["rule" if header else "field_2"] == "a;b;c;1"


def test_quoted_numbers_are_numbers_unless_ids_or_mixed(tmp_path: Path) -> None:
    records = [
        record(n)
        | {"price": f"{n}.76", "amount": str(n), "orderId": str(n % 7), "code": f"0{n}", "or": "x" * (n == 3)}
        for n in range(20)
    ]
    actual = drafted(tmp_path, [json.dumps(one) for one in records])
    assert {name: column.type for name, column in actual.stream.columns.items()} == {
        "user": "string", "n": "integer", "price": "number", "amount": "integer", "order_id": "string",
        "code": "string", "or_": "string",
    }  # fmt: skip
    assert (actual.column("price")[:2], actual.column("amount")[1], actual.refused) == ([0.76, 1.76], 1, [])


@pytest.mark.parametrize(
    ("ids", "again", "text"),
    [
        (lambda n: n, 3, "3 of 43 events repeat"),
        (lambda n: n, 40, "40 of 80 events repeat"),
        (lambda n: n, 0, None),
        (lambda n: n % 20, 0, None),
    ],
)
def test_duplicate_ids_are_reported_with_a_rule_to_drop_them(
    tmp_path: Path, ids: Callable[[int], int], again: int, text: str | None
) -> None:
    lines = [json.dumps(record(n) | {"event_id": f"e{ids(n)}"}) for n in range(40)]
    actual = drafted(tmp_path, [*lines, *lines[:again]])
    proposal = (
        f"# unique: [event_id]  # ?: {text} the event_id of another one; with this, one of an hour stays\n"
    )
    assert (proposal in actual.text, "unique" in actual.text) == (text is not None, text is not None)
