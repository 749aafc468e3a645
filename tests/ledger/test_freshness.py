"""The reports of `status` and `explain` on a lake, compared with what the runs do to it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.stream_harness import StreamHarness, hour, line
from transom.app.freshness import freshness_of
from transom.app.pipeline import run_stages
from transom.cli.__main__ import app
from transom.core.intervals import Interval, format_hour, parse

Make = Callable[..., StreamHarness]
HOURS = range(8)
TEXT = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", on_conflict: replace}
key: [client]
repair_window: 1 hour
chunk: 5 hours
aggregates:
  traffic: {measures: {n: count}, levels: "RANGES 4 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR"}
checks: {few: {stage: aggregates, every: n < 6}}
"""


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRANSOM_LANDING", raising=False)


class ExplainedLake:
    """A stream that a test queries as a user does, and runs as the answer advises."""

    def __init__(self, day: StreamHarness, text: str) -> None:
        self.day, self.file = day, day.folder / "web.yaml"
        self.file.write_text(text)

    def explain(self, number: int) -> tuple[list[str], Interval | None]:
        """Return the reasons for an hour's state, and the interval of the printed command."""
        lake = str(Path(self.day.root).parent)
        requested = ["explain", str(self.file), format_hour(hour(number)), "--lake", lake]
        result = CliRunner().invoke(app, requested)
        lines = result.stdout.splitlines()[1:]
        commands = [text for text in lines if "--from" in text]
        assert result.exit_code == len(commands), result.output
        reasons = [
            text.strip()
            for text in lines
            if text.startswith(("    ", "  file")) and "--from" not in text and "to accept it" not in text
        ]
        if not commands:
            return reasons, None
        start, end = commands[0].partition(" --from ")[2].split(" --to ")
        return reasons, Interval(parse(start), parse(end))

    def stale(self) -> dict[str, list[int]]:
        """Return the stale hours of each stage."""
        fresh = freshness_of(self.day.stream, self.day.snapshot())
        return {
            stage: [n for n in HOURS if hour(n) in fresh.stale(stage)] for stage in ("ingest", "aggregates")
        }

    def run(self, interval: Interval, *stages: str) -> None:
        """Run as a job does, with an entry in the ledger."""
        lake = str(Path(self.day.root).parent)
        run_stages(self.day.spark, self.day.stream, interval, lake=lake, command="", stages=stages or None)

    def repair(self, number: int) -> None:
        """Run the command printed for an hour."""
        _, interval = self.explain(number)
        assert interval is not None
        self.run(interval)

    def troubled(self) -> dict[int, list[str]]:
        """Return the hours that are not fresh, with the reasons."""
        return {n: reasons for n in HOURS for reasons, command in [self.explain(n)] if command}


def lines(number: int, count: int) -> list[str]:
    return [line(3600 * number + i) for i in range(count)]


@pytest.mark.full
def test_printed_command_repairs_the_hour(make_stream: Make) -> None:
    day = make_stream(TEXT)
    requested = ExplainedLake(day, TEXT)
    fresh: dict[str, list[int]] = {"ingest": [], "aggregates": []}
    for number in HOURS:
        day.land(number, lines(number, 3 if number == 6 else 1))
    requested.run(Interval(hour(0), hour(len(HOURS))))
    quarantined = requested.troubled()
    assert (requested.stale(), list(quarantined)) == (fresh, [6, 7])
    assert quarantined[6][0].startswith("quarantined; the rows published before stay: few: observed ")

    # A changed file does not concern the ledger. Its rows do, once they are read.
    changed = day.land(1, lines(1, 2))
    (reason,) = requested.troubled().pop(1)
    assert reason.startswith(f"file {changed.relative_to(day.folder)}: changed, ")
    assert requested.explain(1)[1] == Interval(hour(1), hour(2))
    assert requested.stale() == fresh
    requested.run(Interval(hour(1), hour(2)), "ingest")
    assert requested.stale() == {"ingest": [], "aggregates": [1, 2, 3, 4]}
    since = "the {} of 2015-05-17T01:00 have changed since it was computed from them"
    by_granules = "the granules{} that it is computed from are stale"
    assert requested.troubled() == quarantined | {
        1: [since.format("events"), by_granules.format("")],
        **{number: [by_granules.format(" of 2015-05-17T01:00")] for number in (2, 3, 4)},
    }

    # A run as near as that does not reach hours outside `repair_window`; the command goes back to the cause.
    requested.repair(1)
    assert requested.stale() == {"ingest": [], "aggregates": [3, 4]}
    assert requested.troubled() == quarantined | {
        3: [since.format("granules")],
        4: [since.format("granules")],
    }
    assert requested.explain(4)[1] == Interval(hour(1), hour(5))
    requested.repair(4)
    assert (requested.stale(), requested.troubled()) == (fresh, quarantined)

    # A quarantined hour is stale when other checks would evaluate it.
    text = TEXT.replace("n < 6", "n < 9")
    requested = ExplainedLake(make_stream(text), text)
    assert requested.stale() == {"ingest": [], "aggregates": [6, 7]}
    others = "its checks, or their waivers, have changed since it was quarantined"
    assert requested.troubled() == {number: [others, *reasons] for number, reasons in quarantined.items()}
    requested.repair(6)
    assert (requested.stale(), requested.troubled()) == (fresh, {})
