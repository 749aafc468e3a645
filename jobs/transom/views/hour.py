"""One hour: the state and the cause of each stage, what is computed from it, and what there is to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from transom.app.command_lines import submit_hours
from transom.app.definitions import definitions_of
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR, Interval, format_hour, moment_of, number_of
from transom.core.partitions import SOURCE_STAGE, PartitionKey
from transom.core.terminal import counted
from transom.features.ingest.expected_inputs import scheduled
from transom.ledger.dependents import dependents_of
from transom.ledger.freshness import Freshness
from transom.ledger.ledger import Ledger
from transom.ledger.waivers import format_waived
from transom.spec.external_source import EVENTS
from transom.spec.stream import Stream
from transom.storage.tables import instant
from transom.views.explain_hour import HourExplanation
from transom.views.hours import MEANINGS, format_ranges, hours
from transom.views.open_stream import OpenStream


@dataclass(frozen=True)
class StageOfHour:
    """A stage of an hour.

    Attributes:
        stage: the stage.
        state: its state, as in the grid.
        meaning: what the state means.
        causes: the state of each table, and why it is not published, complete and fresh; as in
            `transom explain`.
        dependents: the hours that are computed from this stage of the hour, as text, by stage.
        accepted: the failed checks that the stream file accepts.
    """

    stage: str
    state: str
    meaning: str
    causes: tuple[str, ...]
    dependents: Mapping[str, str]
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True)
class HourDetail:
    """The details of an hour.

    Attributes:
        hour: the hour.
        stages: its stages, in the order in which they run.
        explain: the command that also looks at the files of the hour.
        advice: what to do before the command; None if there is nothing to do.
        command: the command that computes the hour and what its causes need; None if there is nothing to do.
        to_run: the hours that it runs; None if there is nothing to do.
    """

    hour: datetime
    stages: tuple[StageOfHour, ...]
    explain: str
    advice: str | None = None
    command: str | None = None
    to_run: Interval | None = None


def neighbours(hour: datetime, requested: Int64s) -> tuple[datetime | None, datetime | None]:
    """Return the last requested hour before an hour and the first one after it; None if there is none.

    Args:
        hour: the hour, requested or not.
        requested: the requested hours since the epoch, ascending.
    """
    number = number_of(hour)
    before = requested[: np.searchsorted(requested, number)]
    after = requested[np.searchsorted(requested, number, "right") :]
    return (
        moment_of(before[-1].item()) if len(before) else None,
        moment_of(after[0].item()) if len(after) else None,
    )


def hour_detail(
    stream: Stream, file: object, lake: str, ledger: Ledger, freshness: Freshness, hour: datetime
) -> HourDetail:
    """Return the details of an hour, from the ledger alone.

    Args:
        stream: the stream.
        file: the stream file, for the command.
        lake: the lake, for the command.
        ledger: the ledger of the stream.
        freshness: the freshness of its partitions.
        hour: the hour, requested or not.
    """
    snapshot = freshness.snapshot
    grid = hours(stream, snapshot, freshness, Interval.of_hour(hour))
    explanation = HourExplanation(stream, ledger, hour, freshness)
    definitions, numbers = definitions_of(stream).values(), snapshot.required_hours.numbers
    source = [table for table in snapshot.names if table[0] == SOURCE_STAGE]
    stages = []
    for stage, (cell, *_) in grid.stages.items():
        dependents = dependents_of(definitions, numbers, freshness.spans, source, stage, hour)
        texts = {
            name: f"{counted(len(of), 'hour')}: {format_ranges(of.numbers)}"
            for name, of in dependents.items()
        }
        causes = tuple(explanation.of_stages[stage])
        waived = (of for of in ledger.accepted(snapshot, stage) if of.partition.hour == hour)
        accepted = tuple(map(format_waived, waived))
        stages.append(StageOfHour(stage, cell.state, MEANINGS[cell.state], causes, texts, accepted))
    detail = HourDetail(hour, tuple(stages), f"transom explain {stream.name} {format_hour(hour)}")
    if not explanation.troubled:
        return detail
    first, last = explanation.run_interval
    return HourDetail(
        hour,
        detail.stages,
        detail.explain,
        explanation.advice,
        submit_hours(file, lake, first, last),
        Interval(first, last + HOUR),
    )


def events_text(opened: OpenStream, hour: datetime) -> str | None:
    """Return the number of published events of an hour as text; None if ingest never computed the hour."""
    state = opened.snapshot().get(PartitionKey(SOURCE_STAGE, EVENTS, EVENTS, hour))
    if state is None or state.status not in ("published", "expired"):
        return None
    return counted(state.rows, "event") if state.rows else "no event"


def files_text(opened: OpenStream, hour: datetime) -> str:
    """Return how many files an hour has, and how many are expected, as text."""
    table = opened.tables.pin("files")
    of = f"SELECT count(*) AS files FROM t WHERE hour = {instant(hour)} AND status <> 'missing'"
    came = sum(row["files"] for row in table.rows(of)) if table else 0
    source = opened.stream.source
    files, is_scheduled = counted(came, "file") if came else "no file", scheduled(opened.stream, hour)
    if not (source.expected_files or source.periods_checked):
        return f"{files} came; no file is expected of this stream, so no check finds a missing one"
    if not is_scheduled:
        return f"{files} came; none is expected, as the hour is outside of the stream's schedule"
    if source.expected_files:
        return f"{came} of {counted(source.expected_files, 'expected file')} came"
    return f"{files} came; files are expected for the whole hour, and a check finds missing ones"
