"""Listing and opening files of a landing folder with any names, by path and by URI."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyarrow import fs

from transom.core.path_pattern import PathPattern
from transom.features.ingest import landing
from transom.features.ingest.landing import FileNames, Landing, LandingError, is_there, list_files, open_file
from transom.storage import filesystem as systems
from transom.storage.filesystem import absolute

NAMES = ["conn 05:00:00-06:00:00.log", "conn%2005:00.log", "conn+[x]#?&=é.log", "north/conn.log"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a landing folder whose own name is as hard as its files' names."""
    root = tmp_path / "in here: 100%25"
    for name in NAMES:
        file = root / "a b" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)
    monkeypatch.delenv("TRANSOM_LANDING", raising=False)
    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))
    return root


def escaped(path: str) -> str:
    return path.replace("%", "%%")


def assert_all_are_found(text: str, prefix: str, names: list[str]) -> None:
    result = list_files(PathPattern(text))
    assert sorted(result) == sorted(f"{prefix}{name}" for name in names)
    for name in names:
        path = f"{prefix}{name}"
        assert result[path].size == len(Path(name).name.encode())
        assert is_there(path)
        with open_file(absolute(path)) as source:
            assert source.read().decode() == Path(name).name
    assert not is_there(f"{prefix}another.log")
    with pytest.raises(FileNotFoundError):
        open_file(absolute(f"{prefix}another.log"))


FLAT = [name for name in NAMES if "/" not in name]


def test_absolute_path_is_listed(folder: Path) -> None:
    assert_all_are_found(f"{escaped(str(folder))}/a b/conn*.log", f"{folder}/a b/", FLAT)


def test_uri_is_listed(folder: Path) -> None:
    prefix = f"file://{folder}/a b/"
    assert_all_are_found(f"{escaped(prefix)}conn*.log", prefix, FLAT)
    assert absolute(f"{prefix}conn.log") == f"{prefix}conn.log"


@pytest.mark.parametrize("end", ["", "/"])
def test_path_below_the_landing_folder_is_listed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    for named in (str(folder), f"file://{folder}"):
        monkeypatch.setenv("TRANSOM_LANDING", named + end)
        assert_all_are_found("a b/conn*.log", "a b/", FLAT)
        assert absolute("a b/conn.log") == f"{named}/a b/conn.log"


def test_pattern_with_a_capture_in_its_first_folder_is_listed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for named in (str(folder), f"file://{folder}"):
        monkeypatch.setenv("TRANSOM_LANDING", named)
        assert_all_are_found("{site}/{part}/conn.log", "", ["a b/north/conn.log"])
        (result,) = list_files(PathPattern("{site}/{part}/conn.log")).values()
        assert result.captures == {"site": "a b", "part": "north"}


def test_relative_landing_folder_is_reported_as_absolute_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TRANSOM_LANDING", ".")
    assert absolute("a b/x.log") == f"{folder}/a b/x.log"
    assert sorted(list_files(PathPattern("*/north/conn.log"))) == ["a b/north/conn.log"]


@pytest.mark.parametrize(
    ("home", "path"),
    [("/", "/x.log"), ("file:///", "file:///x.log"), ("s3://bucket/", "s3://bucket/x.log")],
)
def test_root_folder_may_be_the_landing_folder(monkeypatch: pytest.MonkeyPatch, home: str, path: str) -> None:
    monkeypatch.setenv("TRANSOM_LANDING", home)
    assert absolute("x.log") == path


def test_path_of_an_object_store_is_bucket_and_key_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = []

    def from_uri(uri: str) -> tuple[fs.FileSystem, str]:
        requested.append(uri)
        return fs.LocalFileSystem(), "logs"

    monkeypatch.setattr(systems, "fs", type("fs", (), {"FileSystem": type("F", (), {"from_uri": from_uri})}))
    systems._host.cache_clear()
    try:
        for scheme, name in (("s3", "a b%20:c.log"), ("s3a", "d.log")):
            assert landing.locate(f"{scheme}://logs/web/{name}")[1] == f"logs/web/{name}"
    finally:
        systems._host.cache_clear()
    assert requested == ["s3://logs/"]


def test_missing_landing_folder_or_unknown_scheme_is_refused(tmp_path: Path) -> None:
    for path in (f"{tmp_path}/nothing", f"file://{tmp_path}/nothing"):
        with pytest.raises(LandingError, match=r"landing folder .*/nothing cannot be listed"):
            list_files(PathPattern(f"{path}/%Y.log"))
    with pytest.raises(LandingError, match=r"source\.path: gopher://host/logs cannot be opened"):
        list_files(PathPattern("gopher://host/logs/%Y.log"))


class Locked:
    """The local disk, with one folder that even root may not list."""

    def __init__(self, locked: Path) -> None:
        self.locked = str(locked)

    def get_file_info(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        result: list[fs.FileInfo] = fs.LocalFileSystem().get_file_info(selector)
        if selector.base_dir == self.locked or (
            selector.recursive and self.locked in {i.path for i in result}
        ):
            raise PermissionError(f"Cannot list directory '{self.locked}'")
        return result


def lock(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    locate = landing.locate
    monkeypatch.setattr(landing, "locate", lambda path: (Locked(folder), locate(path)[1]))


def test_unreadable_folder_that_may_contain_files_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(monkeypatch, folder / "a b" / "north")
    for prefix in ("", "file://"):
        with pytest.raises(LandingError, match=r"landing folder /\S+.*/a b/north cannot be listed"):
            list_files(PathPattern(f"{prefix}{escaped(str(folder))}/{{site}}/n*/conn.log"))


@pytest.mark.parametrize(("pattern", "names"), [("{site}/conn*.log", FLAT), ("{site}/s*/conn.log", [])])
def test_unreadable_folder_without_possible_files_is_ignored(
    folder: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, names: list[str]
) -> None:
    lock(monkeypatch, folder / "a b" / "north")
    result = list_files(PathPattern(f"{escaped(str(folder))}/{pattern}"))
    assert result.keys() == {f"{folder}/a b/{name}" for name in names}


def test_name_that_is_no_text_is_reported(folder: Path) -> None:
    Path(os.fsdecode(bytes(folder / "a b") + b"/\xff.log")).write_text("")
    with pytest.raises(LandingError, match=r"\\xff\.log' is not UTF-8"):
        list_files(PathPattern(f"{escaped(str(folder))}/a b/*.log"))


def test_times_may_count_from_the_start_in_a_name(folder: Path) -> None:
    (folder / "2024-04-19.0530.log").touch()
    pattern = PathPattern(f"{escaped(str(folder))}/%Y-%m-%d.%H%M.log", "Asia/Kolkata")
    result = Landing.read(FileNames(pattern, times_by_name=True))
    assert [file.origin for path in result.files if (file := result.listed(path))] == [
        datetime(2024, 4, 19, tzinfo=UTC)
    ]
    assert [file.origin for file in list_files(pattern).values()] == [None]
