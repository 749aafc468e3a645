"""NUL bytes: skipped and counted at the start of a line, rejected inside one."""

import pytest

from tests.formats.some_formats import CSV, LAYOUTS, good_lines, heads, read

HOLE = b"\0" * 300_000


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("block", [1, 1000, 1 << 20])
def test_hole_before_any_line_is_skipped_and_counted(name: str, block: int) -> None:
    line = good_lines[name].encode() + b"\n"
    plain = heads.get(name, b"") + line * 3
    events, rejected, summary = read(plain, LAYOUTS[name])
    for data in (HOLE + plain, plain.replace(line, HOLE + line, 2), plain + HOLE):
        result = read(data, LAYOUTS[name], block=block)
        assert result[:2] == (events, rejected)
        assert (result[2].lines, result[2].nul_bytes) == (summary.lines, data.count(0))
        assert (result[2].bytes, result[2].broken) == (len(data), None)


def test_hole_longer_than_a_stored_line_hides_no_line() -> None:
    data = b"ts,status\n" + b"\0" * (20 * 2**20) + b"1,2\n3,4\n"
    events, rejected, summary = read(data, CSV)
    assert ([event["status"] for event in events], rejected) == ([2, 4], [])
    assert (summary.lines, summary.nul_bytes) == (3, 20 * 2**20)


def test_line_with_nul_bytes_inside_is_rejected_unchanged() -> None:
    events, rejected, summary = read(b"ts,client\n1,a\n2,b\0\0c\n\0\0\n3,d\n", CSV)
    assert [event["client"] for event in events] == ["a", "d"]
    assert [(row["source_line"], row["raw"], row["reason"]) for row in rejected] == [
        (3, "2,b\0\0c", "nul_byte"),
        (4, "", "empty"),
    ]
    assert rejected[0]["detail"] == "nul byte; expected text, which has no NUL bytes inside of a line"
    assert summary.nul_bytes == 2


@pytest.mark.parametrize("name", LAYOUTS)
def test_file_of_nul_bytes_alone_is_broken(name: str) -> None:
    events, rejected, summary = read(HOLE, LAYOUTS[name], block=1000)
    text = "300000 NUL bytes and nothing else; expected lines of text"
    assert (events, [row["reason"] for row in rejected]) == ([], ["nul_bytes_only"])
    assert summary.broken == f"nul_bytes_only: {text}"
    assert (summary.lines, summary.nul_bytes) == (1, 300_000)
