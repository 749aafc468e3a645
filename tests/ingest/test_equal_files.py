"""Files of equal bytes: which count as one, which count each, and the warnings about them."""

from dataclasses import replace

import pytest

from tests.support.file_factories import RULES, after, at, content, listed, run
from transom.core.file_names import split_name
from transom.core.path_pattern import PathPattern
from transom.features.ingest.checks import hour_checks
from transom.features.ingest.equal_files import equal_files, names_of
from transom.features.ingest.file_records import FileContent, FileRecord, ListedFile, source_id
from transom.features.ingest.hour_states import hour_states
from transom.stream import Stream, parse

PATTERN = "%Y-%m-%d/web*.%H.log*"


def stream(path: str = PATTERN, **source: object) -> Stream:
    return parse({"name": "web", "preset": "apache/combined", "source": {"path": path, **source}})


def listed_files(of: Stream, *paths: str, text: str = "ab") -> dict[str, tuple[ListedFile, FileContent]]:
    """Return files of one text, as a run lists and reads them."""
    there = {}
    for path in paths:
        match = of.source.pattern.match(path)
        assert match is not None
        assert match.hour is not None
        varies = match.varies if of.source.equal_files == "keep" else ()
        one = replace(listed(path), hour=match.hour, captures=match.captures, varies=varies)
        read = content(text)
        there[path] = one, replace(read, source_id=source_id(read.digest, **one.identity))
    return there


def known(of: Stream, *paths: str, text: str = "ab") -> dict[str, FileRecord]:
    rules = replace(RULES, name_of=names_of(of))
    return after({}, run({}, listed_files(of, *paths, text=text), rules))


def rows(files: dict[str, FileRecord]) -> int:
    """Return the number of published contents."""
    return len({file.source_id for file in files.values()})


@pytest.mark.parametrize(
    ("name", "plain", "rotation"),
    [
        ("a/access.log", "a/access.log", ""),
        ("access.log.gz", "access.log", ""),
        ("access.log.1", "access.log", ".1"),
        ("access.log.12.zst", "access.log", ".12"),
        ("access.log-20240506.gz", "access.log", "-20240506"),
        ("access.log.2024-05-06", "access.log", ".2024-05-06"),
        ("access.log.GZ", "access.log", ""),
        ("web1.log", "web1.log", ""),
        ("web.1.log", "web.1.log", ""),
        ("log.99999", "log.99999", ""),
        ("log-10000001", "log-10000001", ""),
        ("a/.gz", "a/.gz", ""),
        ("access.log.10.0.0.1", "access.log.10.0.0.1", ""),
        ("access.log.10.0.0.1.gz", "access.log.10.0.0.1", ""),
        ("access.log.10.0.0.1.2.gz", "access.log.10.0.0.1", ".2"),
        ("fw_172.160.1.192", "fw_172.160.1.192", ""),
        ("10.0.0.1", "10.0.0.1", ""),
        ("access.log.300.0.0.1", "access.log", ".300.0.0.1"),
        ("node.1", "node", ".1"),
    ],
)
def test_suffixes_of_compression_and_rotation_are_recognised(name: str, plain: str, rotation: str) -> None:
    assert split_name(name) == (plain, rotation)


@pytest.mark.parametrize(
    ("pattern", "path", "varies"),
    [
        (PATTERN, "2024-05-06/web1.11.log", ("1", "")),
        (PATTERN, "2024-05-06/web1.11.log.2.gz", ("1", "")),
        (PATTERN, "2024-05-06/web1.11.log.old.gz", ("1", ".old")),
        ("*/access.%Y-%m-%dT%H.log.gz", "web1/access.2024-05-06T11.log.gz", ("web1",)),
        ("%Y-%m-%d/%H/*", "2024-05-06/11/web1.log.zst", ("web1.log",)),
        ("%Y-%m-%d/%H*.gz", "2024-05-06/11.3.gz", ("",)),
    ],
)
def test_star_of_a_pattern_matches_the_expected_part(
    pattern: str, path: str, varies: tuple[str, ...]
) -> None:
    match = PathPattern(pattern).match(path)
    assert match is not None
    assert match.varies == varies


def test_equal_files_of_two_hosts_both_count_and_a_warning_names_both() -> None:
    of = stream()
    files = known(of, "2024-05-06/web1.11.log", "2024-05-06/web2.11.log")
    assert rows(files) == 2
    assert [file.status for file in files.values()] == ["ingested", "ingested"]
    equal = equal_files(files.values(), names_of(of))
    hour = files["2024-05-06/web1.11.log"].hour
    state = hour_states(files.values(), [hour], RULES.spec_hash, (), equal)[hour]
    assert state.at_fault["files_distinct"] == [
        "2024-05-06/web2.11.log holds the same bytes as 2024-05-06/web1.11.log; both count"
    ]
    assert state.missing == state.wrong == []
    assert (
        files["2024-05-06/web2.11.log"].status_reason
        == "the same bytes as 2024-05-06/web1.11.log; both count"
    )
    assert "files_distinct" in [check.name for check in hour_checks(of)]


@pytest.mark.parametrize("other", ["web1.11.log.gz", "web1.11.log.1", "web1.11.log.1.zst"])
def test_compressed_or_rotated_copy_counts_once_without_a_warning(other: str) -> None:
    of = stream()
    files = known(of, "2024-05-06/web1.11.log", f"2024-05-06/{other}")
    assert rows(files) == 1
    assert equal_files(files.values(), names_of(of)) == {}


def test_equal_files_with_several_rotation_numbers_are_reported() -> None:
    # They may belong to two hosts as well.
    of = stream("%Y-%m-%d/%H/web*")
    files = known(of, "2024-05-06/11/web.1", "2024-05-06/11/web.2")
    assert rows(files) == 1
    (equal,) = equal_files(files.values(), names_of(of)).values()
    assert equal.words == "2024-05-06/11/web.2 holds the same bytes as 2024-05-06/11/web.1; they count once"
    removed = {
        path: replace(file, status="missing") if path.endswith("1") else file for path, file in files.items()
    }
    # One of them may be gone when the other one arrives.
    (equal,) = equal_files(removed.values(), names_of(of)).values()
    assert equal.words == "2024-05-06/11/web.2 holds the same bytes as 2024-05-06/11/web.1; they count once"


def test_rotation_number_after_an_extension_that_increases_is_not_reported() -> None:
    of = stream()
    files = known(of, "2024-05-06/web1.11.log.1", "2024-05-06/web1.11.log.2")
    assert len(equal_files(files.values(), names_of(of))) == 1
    removed = {
        path: replace(file, status="missing") if path.endswith("1") else file for path, file in files.items()
    }
    assert equal_files(removed.values(), names_of(of)) == {}


def test_equal_files_of_two_ip_addresses_both_count() -> None:
    of = stream("%Y-%m-%d/%H/*")
    files = known(of, "2024-05-06/11/access.log.10.0.0.1", "2024-05-06/11/access.log.10.0.0.2")
    assert rows(files) == 2
    (equal,) = equal_files(files.values(), names_of(of)).values()
    assert equal.counted


def test_file_delivered_again_under_another_hour_counts_once_and_is_reported() -> None:
    of = stream()
    files = known(of, "2024-05-06/web1.10.log", "2024-05-06/web1.11.log")
    assert rows(files) == 1
    (equal,) = equal_files(files.values(), names_of(of)).values()
    assert (equal.path, equal.counted) == ("2024-05-06/web1.11.log", False)


def test_captures_distinguish_sources_without_a_warning() -> None:
    of = stream("%Y-%m-%d/{host}.%H.log")
    files = known(of, "2024-05-06/web1.11.log", "2024-05-06/web2.11.log")
    assert rows(files) == 2
    assert equal_files(files.values(), names_of(of)) == {}


def test_copies_count_once_if_the_stream_declares_it() -> None:
    of = stream(equal_files="one")
    files = known(of, "2024-05-06/web1.11.log", "2024-05-06/web2.11.log")
    assert rows(files) == 1
    assert files["2024-05-06/web2.11.log"].status == "duplicate"
    # They are still listed as equal; only the warning is omitted.
    assert len(equal_files(files.values(), names_of(of))) == 1
    assert "files_distinct" not in [check.name for check in hour_checks(of)]


def test_equal_files_without_events_give_no_warning() -> None:
    of = stream()
    rules = replace(RULES, name_of=names_of(of))
    observed = listed_files(of, "2024-05-06/web1.11.log", "2024-05-06/web2.11.log", text="")
    empty = {path: (one, replace(read, accepted=0)) for path, (one, read) in observed.items()}
    files = after({}, run({}, empty, rules))
    assert equal_files(files.values(), names_of(of)) == {}


def test_warnings_do_not_depend_on_the_order_of_arrival() -> None:
    of = stream()
    rules = replace(RULES, name_of=names_of(of))
    both = listed_files(of, "2024-05-06/web1.11.log", "2024-05-06/web2.11.log")
    at_once = after({}, run({}, both, rules))
    late = {path: both[path] for path in ("2024-05-06/web2.11.log",)}
    first = after({}, run({}, late, rules))
    assert after(first, run(first, both, rules)) == at_once


def test_star_distinguishes_files_only_if_it_matches_some_text() -> None:
    assert source_id("d", {}, None, ("", "")) == source_id("d", {})
    assert source_id("d", {}, None, ("1", "")) != source_id("d", {}, None, ("", "1"))
    assert source_id("d", {}, at(1), ("1",)) != source_id("d", {}, at(1))


def test_compressed_copy_of_a_reported_file_is_not_reported_again() -> None:
    of = stream()
    files = known(of, *(f"2024-05-06/{name}" for name in ("web1.11.log", "web2.11.log", "web2.11.log.gz")))
    assert rows(files) == 2
    assert equal_files(files.values(), names_of(of)).keys() == {"2024-05-06/web2.11.log"}
