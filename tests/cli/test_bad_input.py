"""Bad input on which `init`, `try` and a job agree: the rejected lines, and the reasons."""

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from typer.testing import Result

from transom.cli.adhoc_files import scan_file
from transom.cli.arguments import UsageError
from transom.cli.init.draft import draft
from transom.cli.log_sample import read_sample
from transom.formats.read_file import Chunk, FileSummary, read_file
from transom.stream import Stream, parse

Ask = Callable[..., Result]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))
    monkeypatch.delenv("TRANSOM_LANDING", raising=False)


class Case(NamedTuple):
    """A log of twenty good lines and one bad line.

    Attributes:
        good: returns a line by its number.
        drafted: the draft's fields of the source or the time, in addition to the path.
        reason: why the line is rejected, with the observed value.
    """

    good: Callable[[int], str]
    bad: str
    drafted: dict[str, Any]
    reason: str


def at(second: int) -> str:
    return f"2024-05-06T10:00:{second:02}Z"


def carried(text: str) -> str:
    return json.dumps({"time": at(30), "log": text})


CASES = {
    "records through an object": Case(
        lambda n: json.dumps({"log": {"items": [{"at": at(n), "n": n}]}}),
        json.dumps({"log": {"items": {"at": at(30), "n": 1}}}),
        {"format": "json", "options": {"records": "log.items[]"}},
        "no records: log.items is an object; expected a list at log.items[]",
    ),
    "records through a text in a list": Case(
        lambda n: json.dumps({"sets": [{"name": "a", "items": [{"at": at(n), "n": n}]}]}),
        json.dumps({"sets": ["a"]}),
        {"format": "json", "options": {"records": "sets[].items[]"}},
        "no records: sets[0] is a text; expected a list at sets[].items[]",
    ),
    "nanoseconds beyond 64 bits": Case(
        lambda n: json.dumps({"time": 1714989600000000000 + n * 10**9, "n": n}),
        json.dumps({"time": 99999999999999999999, "n": 1}),
        {"column": "time", "format": "epoch_ns"},
        "bad time: 99999999999999999999; expected epoch_ns, whole nanoseconds of at most "
        "9223372036854775807, from 1970 to 2261",
    ),
    "nanoseconds in a text beyond 64 bits": Case(
        lambda n: json.dumps({"time": str(1714989600000000000 + n * 10**9), "n": n}),
        json.dumps({"time": "99999999999999999999", "n": 1}),
        {"column": "time", "format": "epoch_ns"},
        "bad time: 99999999999999999999; expected epoch_ns, whole nanoseconds of at most "
        "9223372036854775807, from 1970 to 2261",
    ),
    "JSON in a text that is cut off": Case(
        lambda n: json.dumps({"time": at(n), "log": json.dumps({"level": "info", "took": n})}),
        carried('{"level": "inf'),
        {"format": "json", "options": {"embedded": {"field": "log", "format": "json"}}},
        "bad json: Unterminated string starting at character 11 of log",
    ),
    "JSON behind a prefix that is cut off": Case(
        lambda n: f'{at(n)} stdout F {{"level": "info", "took": {n}}}',
        f'{at(30)} stdout F {{"level": "info", "took":',
        {"embedded": {"field": "message", "format": "json"}},
        "bad json: Expecting value at character 26 of message",
    ),
}  # fmt: skip


def job(stream: Stream, data: bytes) -> list[tuple[int, str]]:
    """Return the lines that a job rejects, with the observed values."""
    actual = []
    for part in read_file(io.BytesIO(data), "a.log", stream.layout(), None):
        if isinstance(part, Chunk):
            actual += [(row["source_line"], row["detail"]) for row in part.rejected.to_pylist()]
    return actual


def written(folder: Path, lines: Sequence[str]) -> Path:
    file = folder / "a.log"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


@pytest.mark.parametrize("name", CASES)
def test_line_is_rejected_with_one_reason_by_init_try_and_job(run: Ask, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    file = written(tmp_path, [*map(case.good, range(20)), case.bad])
    result = run("init", file, "--name", "app")
    assert result.exit_code == 0, result.output
    shown = [line.strip() for line in result.stderr.splitlines()]
    assert shown == ["transom: 1 of 21 lines is rejected by this draft:", case.reason, case.bad]
    data = yaml.safe_load(result.stdout)
    output = data["source"] | data["time"] | data["source"].get("options", {})
    assert output.items() >= case.drafted.items()
    stream = parse(data)
    tried = scan_file(stream, file)
    assert (tried.lines, tried.events) == (21, 20)
    ((line, raw, observed),) = next(iter(tried.examples.values()))
    assert (line, raw, observed.removeprefix("log: ").removeprefix("message: ")) == (
        21,
        case.bad,
        case.reason,
    )
    assert job(stream, file.read_bytes()) == [(21, case.reason)]


def test_log_of_such_lines_alone_is_refused(tmp_path: Path) -> None:
    """The user must decide on a fault of a whole file: no line of it is an event."""
    for case in CASES.values():
        good = written(tmp_path, [*map(case.good, range(20))])
        stream = parse(yaml.safe_load(draft([read_sample(good)]).text))
        tried = scan_file(stream, written(tmp_path, [case.bad] * 3))
        assert (tried.lines, tried.events) == (3, 0)
        assert sum(tried.reasons.values()) == 3


STREAM = {
    "name": "app",
    "source": {"path": "a.log", "format": "csv"},
    "columns": {"n": {"type": "integer"}},
    "time": {"column": "at"},
}


def test_header_with_a_duplicate_field_is_refused(run: Ask, tmp_path: Path) -> None:
    file = written(tmp_path, ["at,n,n", *(f"{at(n)},{n},x{n % 3}" for n in range(20))])
    stream = parse(STREAM)
    reason = (
        "ambiguous header: n; expected a header that has this name once; else name the columns by "
        "`header: false`, `names` and `skip`"
    )
    assert job(stream, file.read_bytes()) == [(line, reason) for line in range(2, 22)]
    tried = scan_file(stream, file)
    assert (tried.events, tried.reasons) == (0, {"ambiguous_header": 20})
    # The draft follows the advice.
    drafted = yaml.safe_load(run("init", file).stdout)["source"]["options"]
    assert drafted == {"header": False, "names": ["at", "n", "n 2"], "skip": 1}


def test_file_of_nul_bytes_alone_is_refused(run: Ask, tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"\0" * 5000)
    texts = f"{file}: must hold a line; it holds 5000 NUL bytes and nothing else"
    result = run("init", file)
    assert (result.exit_code, result.stderr) == (2, f"transom: {texts}\n")
    # The first check of `try` on a file.
    with pytest.raises(UsageError) as error:
        read_sample(file)
    assert str(error.value) == texts
    *_, summary = read_file(io.BytesIO(file.read_bytes()), "a.log", parse(STREAM).layout(), None)
    assert isinstance(summary, FileSummary)
    output = "nul_bytes_only: 5000 NUL bytes and nothing else; expected lines of text"
    assert (summary.lines, summary.accepted, summary.broken) == (1, 0, output)


def test_path_with_an_empty_capture_is_refused(run: Ask, tmp_path: Path) -> None:
    """A job quarantines such a file: `tests/ingest/test_ingest_checks.py`."""
    stream = parse(STREAM | {"source": {"path": "{host}.log", "format": "csv"}})
    file = tmp_path / ".log"
    file.write_text(f"at,n\n{at(1)},1\n{at(2)},2\n")
    with pytest.raises(
        UsageError, match=r"\{host\} of source.path, \{host\}.log, must have a text in each name"
    ):
        scan_file(stream, file)
    # The draft has no capture that is empty in a name.
    other = tmp_path / "b.log"
    other.write_text(file.read_text())
    drafted = yaml.safe_load(run("init", file, other, "--name", "app").stdout)
    assert drafted["source"]["path"] == "*.log"


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (3, ["0.log", "1.log", "2.log"]),
        (12, ["0.log (1 of 12)", "3.log (4 of 12)", "6.log (7 of 12)", "9.log (10 of 12)"]),
    ],
)
def test_try_prints_a_line_for_several_of_many_files(
    run: Ask, tmp_path: Path, count: int, shown: list[str]
) -> None:
    """Lines that are no events end the command before Spark starts."""
    stream = {"name": "site", "source": {"path": "a.log", "format": "json"}, "columns": {"id": "id"}}
    (tmp_path / "site.yaml").write_text(json.dumps(stream | {"time": {"column": "at"}}))
    files = [tmp_path / f"{number}.log" for number in range(count)]
    for file in files:
        file.write_text("junk\n")
    result = run("try", tmp_path / "site.yaml", *files)
    lines = [line for line in result.output.splitlines() if "reading" in line]
    assert lines == [f"transom: reading {tmp_path}/{text}" for text in shown]
