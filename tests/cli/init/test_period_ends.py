"""Names with the end of a file's period: what `init` proposes, and when it does not."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.init.drafted_logs import home  # noqa: F401
from transom.cli.init.draft import draft
from transom.cli.log_sample import read_sample
from transom.stream import parse

DAY = datetime(2024, 5, 28)  # noqa: DTZ001 - as the names are written


def log(folder: Path, name: str, times: Sequence[str]) -> Path:
    """Write a file with a line for each time of the day, or for each full time."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = (time if "-" in time else f"2024-05-28T{time}" for time in times)
    file.write_text("".join(f'{{"at": "{time}Z", "host": "a", "bytes": 7}}\n' for time in whole))
    return file


def drafted(folder: Path, files: Mapping[str, Sequence[str]]) -> tuple[dict[str, Any], str]:
    """Return the `source` of a draft, and its text."""
    text = draft([read_sample(log(folder, name, times)) for name, times in files.items()], "lb").text
    data = yaml.safe_load(text)
    parse(data)
    return data["source"], text


def ends(length: timedelta, form: str, many: int, shift: timedelta = timedelta(0)) -> dict[str, list[str]]:
    """Write files of periods, with lines at their start, in their middle and shortly before their end.

    Args:
        shift: how much later than the end of a period the time in a name is.
    """
    result = {}
    for number in range(many):
        start = DAY + 6 * timedelta(hours=1) + number * length
        moments = (start, start + length / 2, start + length - timedelta(seconds=1))
        result[f"{start + length + shift:{form}}"] = [moment.isoformat() for moment in moments]
    return result


@pytest.mark.parametrize(
    ("length", "form", "path", "covers"),
    [
        (timedelta(minutes=5), "%Y/%m/%d/lb_%Y%m%dT%H%MZ_x.log", "%Y/%m/%d/lb_%Y%m%dT%H%M*.log", "5 minutes"),
        (timedelta(minutes=20), "lb.%Y-%m-%d_%H-%M.log", "lb.%Y-%m-%d_%H-%M.log", "20 minutes"),
        (timedelta(minutes=5), "lb.%Y-%m-%dT%H:%M:%S.log", "lb.%Y-%m-%dT%H:%M*.log", "5 minutes"),
        (timedelta(minutes=5), "lb.%Y%m%d%H%M", "lb.%Y%m%d%H%M", "5 minutes"),
        (timedelta(minutes=5), "lb-%Y%m%d%H%M%S.log", "lb-%Y%m%d%H%M*.log", "5 minutes"),
        (timedelta(hours=1), "%Y-%m-%d/lb.%H.log", "%Y-%m-%d/lb.%H.log", "1 hour"),
        (timedelta(hours=6), "%Y-%m-%d/lb.%H00.log", "%Y-%m-%d/lb.%H%M.log", "6 hours"),
    ],
)
def test_names_later_than_all_lines_mean_the_end(
    tmp_path: Path, length: timedelta, form: str, path: str, covers: str
) -> None:
    source, text = drafted(tmp_path, ends(length, form, 3))
    assert (source["path"], source["covers"], source["name_time"]) == (path, covers, "end")
    assert "# ?: the time in a name, such as 2024-05-28T" in text
    # For full hours, a zone may be the reason, too.
    assert ("another zone than UTC" in text) == (length % timedelta(minutes=15) == timedelta(0))


def test_day_compressed_at_midnight_is_named_after_its_end(tmp_path: Path) -> None:
    files = {
        f"access.log-202405{day + 1}": [f"2024-05-{day}T00:00:01", f"2024-05-{day}T23:59:58"]
        for day in (26, 27, 28)
    }
    source, _ = drafted(tmp_path, files)
    assert (source["path"], source["covers"], source["name_time"]) == (
        "access.log-%Y%m%d", "1 day", "end",
    )  # fmt: skip


def test_missing_file_does_not_lengthen_the_period(tmp_path: Path) -> None:
    files = ends(timedelta(minutes=5), "lb.%Y-%m-%dT%H%M.log", 6)
    del files["lb.2024-05-28T0615.log"]
    assert drafted(tmp_path, files)[0]["covers"] == "5 minutes"


def test_single_name_gives_a_usable_comment(tmp_path: Path) -> None:
    source, text = drafted(tmp_path, ends(timedelta(minutes=5), "lb.%Y-%m-%dT%H%MZ.log", 1))
    assert "covers" not in source
    assert "  # covers: 5 minutes" in text
    chosen = yaml.safe_load(text.replace("  # covers", "  covers").replace("  # name_time", "  name_time"))
    assert parse(chosen).source.covers == timedelta(minutes=5)
    assert parse(chosen).source.name_time == "end"


STARTS = ends(timedelta(minutes=5), "lb.%Y-%m-%dT%H%M.log", 3, timedelta(minutes=-5))


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(STARTS, id="starts"),
        pytest.param(dict([*STARTS.items()][:1]), id="one start"),
        # Times of Europe/Berlin, which is two hours ahead.
        pytest.param(
            ends(timedelta(hours=1), "lb.%Y-%m-%dT%H.log", 3, timedelta(hours=1)), id="another zone"
        ),
        # One file of four has a line after the time in its name.
        pytest.param(
            ends(timedelta(minutes=5), "lb.%Y-%m-%dT%H%M.log", 3)
            | {"lb.2024-05-28T0620.log": ["06:16:00", "06:20:01"]},
            id="one line after its name",
        ),
        pytest.param(
            {
                "lb.2024-05-28T0603.log": ["06:00:10", "06:02:59"],
                "lb.2024-05-28T0641.log": ["06:05:00", "06:40:59"],
                "lb.2024-05-28T0701.log": ["06:42:00", "07:00:59"],
            },
            id="closed when they are full",
        ),
        pytest.param({"lb.log": ["06:00:00"]}, id="no time"),
    ],
)
def test_other_names_mean_no_end(tmp_path: Path, files: Mapping[str, Sequence[str]]) -> None:
    source, text = drafted(tmp_path, files)
    assert source.keys() - {"expected_files"} == {"path", "format"}
    assert "name_time" not in text
