"""CSV as a job reads it: odd lines, header lines anywhere, tabs and blanks as delimiters, missing values."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.cli.init.drafted_logs import drafted, home, refusal

__all__ = ["home"]

ROWS = [f"2024-05-06T10:{n // 60:02}:{n % 60:02}Z,a b,{n}" for n in range(200)]


@pytest.mark.parametrize(
    ("odd", "refused"),
    [
        ('2024-05-06T10:01:40Z,"a b,100', [("unterminated_quote", '2024-05-06T10:01:40Z,"a b,100')]),
        ("2024-05-06T10:01:40Z,a\rb,100", []),
        ('2024-05-06T10:01:40Z,a" "b,100', []),
        ("2024-05-06T10:01:40Z,a,b,100", [("field_count", "2024-05-06T10:01:40Z,a,b,100")]),
    ],
)
def test_one_odd_line_is_rejected_and_the_rest_is_csv(tmp_path: Path, odd: str, refused: list[Any]) -> None:
    actual = drafted(tmp_path, "\n".join(["at,msg,n", *ROWS[:100], odd, *ROWS[101:]]) + "\n", "a.csv")
    assert (actual.stream.source.format, dict(actual.stream.source.options)) == ("csv", {})
    assert actual.refused == refused
    assert len(actual.events) == 200 - len(refused)
    assert actual.times[-1] == "2024-05-06T10:03:19.000"


def test_rejected_line_is_printed_with_its_reason(run: Callable[..., Result], tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    log.write_text("\n".join(["at,msg,n", *ROWS[:100], '2024-05-06T10:01:40Z,"a b,100', *ROWS]))
    result = run("init", log)
    assert (result.exit_code, result.stderr) == (
        0,
        "transom: 1 of 302 lines is rejected by this draft:\n"
        '  unterminated_quote\n    2024-05-06T10:01:40Z,"a b,100\n',
    )


@pytest.mark.parametrize("header", [True, False])
def test_some_records_over_several_lines_are_refused_with_advice(tmp_path: Path, header: bool) -> None:
    rows = ["at,user,what"] if header else []
    for n in range(40):
        note = f'"plan {n}:\nQuery, as ""sent"":\n\nGather {n}"' if n % 5 == 0 else f"select {n}"
        rows.append(f"2024-05-06 10:00:{n:02}.5 UTC,u{n % 3},{note}")
    output = refusal(tmp_path, "\n".join(rows) + "\n", "a.csv")
    # Empty lines are skipped.
    assert output.startswith(
        f"is CSV whose quoted values go over several lines: {40 + header} records in {56 + header} lines. "
    )


@pytest.mark.parametrize(
    ("between", "head", "expected"),
    [
        (" | ", " | ", {"delimiter": " | ", "trim": True}),
        (" ; ", " ; ", {"delimiter": " ; ", "trim": True}),
        (" :: ", " :: ", {"delimiter": " :: ", "trim": True}),
        (" \t ", " \t ", {"delimiter": " \t ", "trim": True}),
        ("    | ", " | ", {"delimiter": " | ", "trim": True}),
        (" | ", "|", {"delimiter": "|", "trim": True}),
        ("::", "::", {"delimiter": "::"}),
        ("||", "||", {"delimiter": "||"}),
        ("~|~", "~|~", {"delimiter": "~|~"}),
    ],
)
def test_delimiters_of_several_characters_or_with_blanks(
    tmp_path: Path, between: str, head: str, expected: dict[str, Any]
) -> None:
    """Messages have several words, quotes, and a sign that is no delimiter."""
    rows = [
        ["2024-05-06 10:00:00", f"h{n % 3}", f"{n}", f'the "disk" {n} of host:a is full'] for n in range(40)
    ]
    rows[7][1], rows[8][3] = "", f'"one{between}two" and'
    lines = [head.join(["at", "host", "n", "message"]), *map(between.join, rows)]
    actual = drafted(tmp_path, [line.rstrip(" ") for line in lines])
    assert dict(actual.stream.source.options) == expected
    assert actual.refused == []
    assert actual.column("host")[:2] + actual.column("host")[7:8] == ["h0", "h1", None]
    assert actual.column("n") == [*range(40)]
    assert actual.column("message")[7:9] == ['the "disk" 7 of host:a is full', f"one{between}two and"]
    assert actual.times[0] == "2024-05-06T10:00:00.000"


@pytest.mark.parametrize(
    ("comma", "quote", "options"),
    [
        (",", '"', {"trim": True}),
        (";", '"', {"delimiter": ";", "trim": True}),
        (",", "'", {"quote": "'", "trim": True}),
    ],
)
@pytest.mark.parametrize("header", [["at", "host", "n", "note"], []])
def test_blank_after_a_comma_is_part_of_no_value(
    tmp_path: Path, comma: str, quote: str, options: dict[str, Any], header: list[str]
) -> None:
    between = f"{comma} "
    rows = [
        [f"2024-05-06T10:00:{n:02}Z", f"{quote}h{n % 3}{quote}", f"{n}", f"{quote}a{between}b{quote}"]
        for n in range(20)
    ]
    actual = drafted(tmp_path, [between.join(row) for row in [*([header] if header else []), *rows]], "a.csv")
    assert dict(actual.stream.source.options).items() >= options.items()
    assert (len(actual.events), actual.refused, actual.header_lines) == (20, [], len(header) > 0)
    assert [*actual.events[4].values()][1:4] == ["h1", 4, f"a{between}b"]


def test_blank_after_a_comma_in_quotes_is_part_of_the_value(tmp_path: Path) -> None:
    actual = drafted(tmp_path, ["at,n,note", *(f'2024-05-06T10:00:{n:02}Z,{n}," a, b"' for n in range(20))])
    assert (dict(actual.stream.source.options), actual.column("note")[1]) == ({}, " a, b")


def test_two_signs_in_a_row_are_an_empty_value_where_one_sign_is_the_delimiter(tmp_path: Path) -> None:
    rows = [f"2024-05-06 10:00:{n:02}||{n}|a|" for n in range(40)]
    actual = drafted(tmp_path, ["at|host|n|user|note", *rows])
    assert dict(actual.stream.source.options) == {"delimiter": "|"}
    assert actual.column("n") == [*range(40)]


def test_colons_of_addresses_are_no_delimiter(tmp_path: Path) -> None:
    rows = [f"2024-05-06T10:00:{n:02}Z fe80::{n:x} joined the group" for n in range(40)]
    assert drafted(tmp_path, rows).stream.source.format == "regex"


LOGGER = [
    '"TOA5","CR1","x"', '"TIMESTAMP","RECORD","Rain_Tot","AirTC"', '"TS","RN","mm","Deg C"',
    '"","","Tot","Avg"',
    *(f'"2024-05-06 10:{n:02}:00",{n},{n / 10},{NAN}' for n, NAN in enumerate(['"NAN"', "12.5"] * 10)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("head", "options", "headers"),
    [
        (LOGGER[:4], {"header": 2, "skip": 4}, 4),
        (LOGGER[1:2], {}, 1),
        (LOGGER[1:4], {"skip": 3, "header": 1}, 3),
        (["Station 7, north", "", *LOGGER[1:2]], {"header": 3}, 3),
        (["# Station 7, north", *LOGGER[1:2], "# begins"], {"comment": "#"}, 3),
        (["# Station 7", '# TIMESTAMP,"RECORD",Rain_Tot,AirTC'], {"comment": "#", "header": 2}, 2),
    ],
)
@pytest.mark.parametrize("count", [5, 20])
def test_header_line_is_found(
    tmp_path: Path, head: list[str], options: dict[str, Any], headers: int, count: int
) -> None:
    actual = drafted(tmp_path, [*head, *LOGGER[4 : 4 + count]], "a.dat")
    assert dict(actual.stream.source.options) == options
    assert (actual.header_lines, actual.refused, len(actual.events)) == (headers, [], count)
    assert actual.times[1] == "2024-05-06T10:01:00.000"
    assert (actual.column("air_tc")[:2], actual.column("record")[1]) == ([None, 12.5], 1)
    assert actual.stream.columns["air_tc"].missing == ("NAN",)
    # A record number is not aggregated; rain is summed.
    assert actual.stream.aggregates["activity"].measures.keys() == {"n", "total_rain_tot"}


@pytest.mark.parametrize(
    ("above", "row", "options"),
    [
        # Forms of dates, and nothing in the columns of numbers.
        (["Day;Clock;Temp", "dd.mm.yyyy;hh:mm;"], "06.05.2024;10:{n:02};{n}.5", {"skip": 2, "header": 1}),
        # The only number below the names of columns is missing in all lines.
        (['"TIME";"T"', '"TS";"C"', '"";"Avg"'], '"2024-05-06 10:{n:02}";"NAN"', {"skip": 3, "header": 1}),
    ],
)
def test_line_without_a_time_below_the_names_is_no_record(
    tmp_path: Path, above: list[str], row: str, options: dict[str, Any]
) -> None:
    actual = drafted(tmp_path, [*above, *(row.format(n=n) for n in range(20))], "a.csv")
    assert actual.stream.source.options == {"delimiter": ";", **options}
    assert (len(actual.events), actual.refused, actual.header_lines) == (20, [], len(above))
    assert actual.times[1] == "2024-05-06T10:01:00.000"


def test_records_with_missing_values_below_the_names_are_records(tmp_path: Path) -> None:
    rows = [f"06.05.2024;10:{n:02};{n}.5" for n in range(20)]
    actual = drafted(tmp_path, ["Day;Clock;Temp", "06.05.2024;09:59;", *rows], "a.csv")
    assert (actual.column("temp")[:2], actual.header_lines) == ([None, 0.5], 1)


FLOW = ["version account-id srcaddr dstport bytes start action"]
FLOW += [
    f"2 1234 {'-' if n % 9 == 0 else f'10.0.0.{n}'} 443 {n + 1}00 {1716876000 + n} OK" for n in range(40)
]


@pytest.mark.parametrize("count", [3, 41])
def test_blanks_are_delimiters_if_the_first_line_names_the_values(tmp_path: Path, count: int) -> None:
    actual = drafted(tmp_path, FLOW[:count])
    assert (actual.stream.source.format, dict(actual.stream.source.options)) == ("csv", {"delimiter": " "})
    assert (len(actual.events), actual.refused, actual.header_lines) == (count - 1, [], 1)
    assert (actual.times[1], actual.column("srcaddr")[:2]) == ("2024-05-28T06:00:01.000", [None, "10.0.0.1"])
    assert actual.stream.aggregates["activity"].measures.keys() == {"n", "total_bytes"}


AGENTS = ('"a  b"', "curl")
ALIGNED = [
    "Time                 Host     Agent   Bytes",
    "-------------------  -------  ------  -----",
    *(
        f"2024-05-06T10:{n // 60:02}:{n % 60:02}  web{n % 12:<4}  {AGENTS[n % 3 > 0]:6}  {n * 37:5}"
        for n in range(100)
    ),
]


@pytest.mark.parametrize("count", [5, 102])
def test_several_blanks_are_one_delimiter_of_aligned_columns(tmp_path: Path, count: int) -> None:
    actual = drafted(tmp_path, ALIGNED[:count])
    assert dict(actual.stream.source.options) == {"delimiter": "blanks", "header": 1, "skip": 2}
    assert (len(actual.events), actual.refused, actual.header_lines) == (count - 2, [], 2)
    assert (actual.times[1], actual.column("host")[:2]) == ("2024-05-06T10:00:01.000", ["web0", "web1"])
    assert (actual.column("agent")[0], actual.column("bytes")[:3]) == ("a  b", [0, 37, 74])


def test_one_blank_everywhere_is_the_delimiter_itself(tmp_path: Path) -> None:
    """Then an empty value between two blanks can be read; in aligned columns none can be empty."""
    head, *rows = FLOW
    actual = drafted(tmp_path, [head, *(row.replace(" - ", "  ") for row in rows)])
    assert dict(actual.stream.source.options) == {"delimiter": " "}
    assert (actual.refused, actual.column("srcaddr")[:2]) == ([], [None, "10.0.0.1"])


def test_two_blanks_everywhere_are_one_delimiter(tmp_path: Path) -> None:
    actual = drafted(tmp_path, [line.replace(" ", "  ") for line in FLOW])
    assert dict(actual.stream.source.options) == {"delimiter": "blanks"}
    assert (actual.refused, actual.column("srcaddr")[:2]) == ([], [None, "10.0.0.1"])


def test_comment_above_aligned_columns_names_them(tmp_path: Path) -> None:
    rows = [f"2024-05-06T00:{n:02} {120 - n:3}  {n / 10:4.1f}" for n in range(50)]
    actual = drafted(tmp_path, ["#TIME             WDIR WSPD", *rows])
    assert actual.stream.source.options["delimiter"] == "blanks"
    assert (actual.column("wdir")[:2], actual.refused, actual.header_lines) == ([120, 119], [], 1)


def test_lines_of_prose_are_no_table(tmp_path: Path) -> None:
    lines = [f"INFO main 2024-05-06T10:00:{n:02}Z took {n} ms" for n in range(20)]
    assert drafted(tmp_path, lines).stream.source.format == "regex"
    assert drafted(tmp_path, ["the log of main", *lines]).stream.source.format == "regex"


@pytest.mark.parametrize("word", ["NAN", "NaN", "nan", "null", "NULL", "n/a", "N/A", "-", "\\N", "(null)"])
def test_texts_for_missing_values_are_proposed(tmp_path: Path, word: str) -> None:
    rows = [f"2024-05-06T10:00:{n:02}Z,{n}.5" for n in range(20)]
    actual = drafted(tmp_path, ["at,temp", *rows[:9], f"{rows[9].partition(',')[0]},{word}", *rows[10:]])
    assert (actual.refused, actual.column("temp")[8:11]) == ([], [8.5, None, 10.5])
    assert actual.stream.columns["temp"].missing == (word,)


def test_nul_bytes_before_lines_are_skipped_and_counted(run: Callable[..., Result], tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    log.write_bytes(b"\0" * 3_000_000 + "\n".join(["at,msg,n", *ROWS]).encode() + b"\n\0\0")
    result = run("init", log)
    assert (result.exit_code, result.stderr) == (
        0,
        f"transom: {log}: 3000002 NUL bytes before lines are skipped: lines may be missing there\n",
    )
    assert result.stdout.startswith("# Drafted from a.csv: 201 lines, 200 events,\n")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("bytes", "sum"), ("sc_bytes", "sum"), ("packets", "sum"), ("duration", "sum"), ("sentbyte", "sum"),
        ("temp", "mean"), ("status", None), ("dst_port", None), ("pid", None), ("last_seen", None),
        ("account", None), ("code", None),
    ],
)  # fmt: skip
def test_first_aggregate_is_a_sum(tmp_path: Path, name: str, kind: str | None) -> None:
    text = "{}.5" if name == "temp" else "17150000{:02}" if name == "last_seen" else "{}"
    rows = [f"2024-05-06T10:00:{n:02}Z,{text.format(n)}" for n in range(20)]
    measures = drafted(tmp_path, [f"at,{name}", *rows]).stream.aggregates["activity"].measures
    assert next(iter(measures)) == "n"
    assert [measure.function for measure in measures.values()][1:] == ([kind] if kind else [])


def test_tabs_before_a_message_are_delimiters(tmp_path: Path) -> None:
    lines = [
        f'2024-05-01 10:{n:02}:00\tINFO\tthis, as one says, is "said in" many words {n}' for n in range(20)
    ]
    actual = drafted(tmp_path, lines)
    assert (actual.stream.source.format, actual.refused) == ("csv", [])
    assert actual.column("field_3")[3] == 'this, as one says, is "said in" many words 3'
    assert actual.times[3] == "2024-05-01T10:03:00.000"


def test_commas_in_a_line_with_a_time_in_prose_are_no_csv(tmp_path: Path) -> None:
    lines = [
        f"2024/05/01 10:00:{n:02} [error] 12#0: *{n} open() {'has ' * (n % 3)}failed, client: 1.2.3.4, on: x"
        for n in range(20)
    ]
    actual = drafted(tmp_path, lines)
    assert (actual.stream.source.format, actual.refused) == ("regex", [])
    assert (actual.times[1], actual.column("level_")[1]) == ("2024-05-01T10:00:01.000", "error")
    assert actual.column("message")[1] == "open() has failed, client: 1.2.3.4, on: x"


@pytest.mark.parametrize(
    ("header", "names", "note"),
    [
        (
            "time,id,value,id",
            ["time", "id", "value", "id 2"],
            "the line that names its fields has a name twice, id; ",
        ),
        (
            ",time,value,id",
            ["field_1", "time", "value", "id"],
            "the line that names its fields lacks a name; ",
        ),
    ],
)
def test_header_with_a_duplicate_or_missing_name_is_refused(
    tmp_path: Path, header: str, names: list[str], note: str
) -> None:
    at = names.index("time")
    rows = [[f"a{n}", f"b{n}", f"c{n}"] for n in range(30)]
    lines = [",".join([*row[:at], f"2024-05-01 10:00:{n:02}", *row[at:]]) for n, row in enumerate(rows)]
    actual = drafted(tmp_path, [header, *lines], "a.csv")
    assert actual.stream.source.options == {"header": False, "names": names, "skip": 1}
    assert (actual.refused, actual.header_lines) == ([], 1)
    assert [list(event.values())[1:4] for event in actual.events] == rows
    assert f"# {note}so the names are listed here\n" in actual.text


def test_csv_records_over_several_lines_are_refused_with_advice(tmp_path: Path) -> None:
    rows = "".join(f'2024-05-01 10:00:{n:02},"a note\nover {n} lines, or more"\n' for n in range(20))
    assert refusal(tmp_path, f"time,what\n{rows}") == (
        "is CSV whose quoted values go over several lines: 21 records in 41 lines. transom reads a record a "
        'line. Convert it: python3 -c "import csv, sys; csv.writer(sys.stdout).writerows('
        "[' '.join(c.split()) "
        'for c in r] for r in csv.reader(sys.stdin))" < FILE > NEW'
    )


def test_decimal_commas_become_numbers_through_an_expression(tmp_path: Path) -> None:
    lines = [f"01.05.2024 10:00:{n:02};north;{n},5;{n % 2 or '2,25'}" for n in range(20)]
    actual = drafted(tmp_path, ["at;place;temp;wind", *lines], "a.csv")
    assert (actual.column("temp_text")[1], actual.column("wind_text")[:2]) == ("1,5", ["2,25", "1"])
    derived = {name: column for name, column in actual.stream.columns.items() if column.is_ is not None}
    assert {name: (column.is_, column.resolution) for name, column in derived.items()} == {
        f"{name}": (
            f"cast(split_part({name}_text, ',', 1) || '.' || split_part({name}_text, ',', 2) as double)",
            step,
        )
        for name, step in (("temp", "0.1"), ("wind", "0.01"))
    }
    assert actual.stream.aggregates["activity"].measures["mean_temp"].column == "temp"
    assert "# ?: derived from temp_text, which has a decimal comma\n" in actual.text
