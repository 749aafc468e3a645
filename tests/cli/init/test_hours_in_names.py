"""Names with hours: their zone, and the number of files of each hour, as drafted."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.cli.init.drafted_logs import home  # noqa: F401
from transom.cli.init.draft import draft
from transom.cli.log_sample import read_sample
from transom.stream import parse

TAKEN = "# ?: the times in the names are read as UTC; else set their `zone`"
SAME = "# the hour in a name is that of its lines, in UTC"
NO_COUNT = "  # expected_files: 1"
THREE = ("web.2024-01-28T06.log", "web.2024-01-28T07.log", "web.2024-01-28T08.log")


def drafted(folder: Path, files: Mapping[str, str]) -> tuple[dict[str, object], str]:
    """Return the `source` of a draft from files, each with a line at a time, and the draft's text."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, time in files.items():
        (folder / name).write_text(f'{{"at": "{time}", "host": "a", "bytes": 7}}\n' * 3)
    text = draft([read_sample(folder / name) for name in files], "web").text
    data = yaml.safe_load(text)
    parse(data)
    return data["source"], text


def at(offset: str, *hours: int) -> dict[str, str]:
    return {
        name: f"2024-01-28T{hour:02}:30:00{offset}"
        for name, hour in zip(THREE, hours or (6, 7, 8), strict=False)
    }


@pytest.mark.parametrize(
    ("files", "output"),
    [
        pytest.param(at("Z"), SAME, id="of their lines"),
        pytest.param(at("Z", 4, 5, 6), "# zone: Etc/GMT-2 ", id="two hours ahead"),
        pytest.param(at("+02:00"), "# zone: Etc/GMT-2 ", id="local, as their lines are written"),
        pytest.param(
            at("+02:00"), "2 hours after their lines in UTC, by the offset +02:00 of the lines", id="named"
        ),
        pytest.param(at("+0545"), "# zone: Asia/Kathmandu ", id="by a quarter of an hour"),
        pytest.param(
            at("+0545"),
            "# ?: names are 5 hours 45 minutes after their lines in UTC, by the offset +05:45 of the lines: "
            "if that is local time, set its `zone`, such as this",
            id="by a quarter of an hour, named",
        ),
        pytest.param(at("Z", 5, 6, 8), TAKEN, id="not all as far"),
        pytest.param({"web.2024-01-28.log": "2024-01-28T06:30:00Z"}, TAKEN, id="days"),
    ],
)
def test_zone_of_names_is_drafted(tmp_path: Path, files: dict[str, str], output: str) -> None:
    source, text = drafted(tmp_path, files)
    assert output in text
    # Unknown values are left to the user.
    assert "zone" not in source


def test_lines_of_full_hours_show_an_offset_of_45_minutes(tmp_path: Path) -> None:
    """The last lines alone fit five hours, too."""
    for hour, name in enumerate(THREE):
        times = (f"2024-01-28T{hour:02}:15:01Z", f"2024-01-28T{hour + 1:02}:14:59Z")
        lines = [f'{{"at": "{time}", "host": "a", "bytes": 7}}\n' for time in times]
        (tmp_path / name).write_text("".join(lines))
    text = draft([read_sample(tmp_path / name) for name in THREE], "web").text
    assert "# zone: Asia/Kathmandu " in text
    assert "# ?: names are 5 hours 45 minutes after their lines in UTC: if that" in text


def test_names_in_the_zone_with_quarter_hours_of_the_lines_are_declared_so(tmp_path: Path) -> None:
    files = {name: f"{time[:19].replace('T', ' ')} Asia/Kathmandu" for name, time in at("").items()}
    source, _ = drafted(tmp_path, files)
    assert source["zone"] == "Asia/Kathmandu"


def test_zone_of_names_is_a_question_if_that_of_the_lines_is_one(tmp_path: Path) -> None:
    _, text = drafted(tmp_path, {name: time.replace("T", " ") for name, time in at("").items()})
    assert (
        "# ?: the hour in a name is that of its lines; with another zone than UTC, set it here, too" in text
    )


def test_names_in_the_zone_of_the_lines_are_declared_so(tmp_path: Path) -> None:
    files = {f"web.2024-07-28T{hour:02}.log": f"2024-07-28 {hour:02}:30:00 CEST" for hour in (8, 9, 10)}
    source, text = drafted(tmp_path, files)
    assert source["zone"] == "Europe/Berlin"
    assert "# ?: the times in the names are those of the lines, in Europe/Berlin" in text


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(THREE, 1, id="one each"),
        pytest.param([f"{host}.{name}" for name in THREE for host in "ab"], 2, id="two each"),
        pytest.param([*(f"a.{name}" for name in THREE), f"b.{THREE[0]}"], None, id="not as many"),
        pytest.param([THREE[0], THREE[2]], None, id="a gap"),
        pytest.param(THREE[:1], None, id="one hour alone"),
    ],
)
def test_number_of_files_of_an_hour_is_drafted(
    tmp_path: Path, names: list[str], expected: int | None
) -> None:
    files = {name: f"2024-01-28T{name[-6:-4]}:{10 + n}:00Z" for n, name in enumerate(names)}
    source, text = drafted(tmp_path, files)
    assert source.get("expected_files") == expected
    assert (NO_COUNT in text) == (expected is None)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        pytest.param("gates-2024012806.txt", "gates-%Y%m%d%H.txt", id="hour"),
        pytest.param("gates-202401280630.txt", "gates-%Y%m%d%H*.txt", id="hour and minute"),
        pytest.param("gates-20240128063059.txt", "gates-%Y%m%d%H*.txt", id="hour, minute and second"),
        pytest.param(
            "gates-2024-01-2806.txt", "gates-%Y-%m-%d%H.txt", id="hour right after a date with signs"
        ),
        pytest.param("gates-202401286.txt", "gates-202401286.txt", id="one digit more is no hour"),
        pytest.param("gates-2024012899.txt", "gates-2024012899.txt", id="no hour of a day"),
    ],
)
def test_hour_without_a_sign_before_it_is_found(tmp_path: Path, name: str, path: str) -> None:
    source, _ = drafted(tmp_path, {name: "2024-01-28T06:45:00Z"})
    assert Path(str(source["path"])).name == path
