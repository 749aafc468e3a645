"""What a job refuses before Spark is started: the place, the rule and the value, in one line."""

import argparse
from pathlib import Path

import pytest

from transom import job

ROOT = Path(__file__).resolve().parents[2]
WEB = str(ROOT / "schemas/streams/web.yaml")


@pytest.mark.parametrize(
    ("stream", "start", "end", "words"),
    [
        (WEB, "2015-05-17T12:00", "2015-05-17T10:00", "ingest: from: must be before to"),
        (WEB, "2015-05-17T10:30", "2015-05-17T12:00", "ingest: from: must be on the hour.*10:30"),
        (WEB, "yesterday", "2015-05-17T12:00", "ingest: from: must be a time.*'yesterday'"),
        ("nowhere.yaml", "2015-05-17T10:00", "2015-05-17T12:00", "ingest: .*nowhere.yaml"),
    ],
)
def test_wrong_arguments(
    monkeypatch: pytest.MonkeyPatch, stream: str, start: str, end: str, words: str
) -> None:
    def no_session(name: str) -> None:
        raise AssertionError("a session was started")

    monkeypatch.setattr(job, "session", no_session)
    parser: argparse.ArgumentParser = job.arg_parser("a job")
    arguments = parser.parse_args(["--stream", stream, "--lake", "x", "--from", start, "--to", end])
    with pytest.raises(SystemExit, match=words) as refused:
        job.run("ingest", arguments, lambda context: pytest.fail("it ran"))
    assert "\n" not in str(refused.value)
