"""All that a page shows of a stream in an interval, read from one state of the lake."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike

from transom.api import Results, read
from transom.app.definitions import definitions_of
from transom.app.freshness import snapshot_of
from transom.charts.section import MAX_ROWS, DataTable, Section
from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval, format_hour
from transom.core.partitions import SOURCE_STAGE
from transom.core.terminal import counted
from transom.engine.selection import Selection
from transom.features.registry import FINDING_ORDER
from transom.findings.from_ledger import Finding
from transom.findings.store import select_findings
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.errors import did_you_mean
from transom.spec.external_source import EVENTS
from transom.storage.tables import LakeError
from transom.stream import Stream
from transom.views import quality
from transom.views.hours import DAY, HourGrid, hours
from transom.views.open_stream import NothingToView
from transom.views.render import render

MAX_FINDINGS, MAX_OF_BLOCK = 200, 50
"""The maximum number of findings: in total, and per kind and block."""
LATEST = 31 * DAY
"""The length of the interval if none is given: the last requested hours."""
LONGEST = 3660 * DAY
"""The length of an interval above which a view shows only the requested hours."""
ATTEMPTS = 3
"""How often a view is read again if a run publishes meanwhile."""


@dataclass(frozen=True)
class View:
    """The content of a page. In a notebook it is shown as the page is.

    Attributes:
        stream: the stream.
        interval: the hours.
        key: the text of each column of the selected key; empty for all keys.
        findings: the findings, the worst first.
        more_findings: a line that counts the other findings; None if there are none.
        hours: the state of each stage by hour.
        results: the sections of the features.
        quality: the sections about the quality of the data.
        notices: what a reader should know about the page as a whole.
    """

    stream: Stream
    interval: Interval
    key: Mapping[str, str]
    findings: list[Finding]
    more_findings: str | None
    hours: HourGrid
    results: list[Section]
    quality: list[Section]
    notices: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The title of the page."""
        of_key = "".join(f", {column} {value}" for column, value in self.key.items())
        start, end = format_hour(self.interval.start), format_hour(self.interval.end)
        return f"{self.stream.name}{of_key}, {start} to {end}"

    def anchor_of(self, finding: Finding) -> str | None:
        """Return the id of the part of the page about a finding's block; None if there is none."""
        anchor = "part-quality-checks"
        if finding.stage != SOURCE_STAGE:
            anchor = f"part-{finding.stage}-{finding.block}"
        return anchor if any(part.anchor == anchor for part in [*self.results, *self.quality]) else None

    def page(self) -> str:
        """Return a page that is complete in itself: one file of HTML, which needs no network."""
        return render("page.html", view=self)

    def _repr_html_(self) -> str:
        """Return the content of the page with its style sheet, for a notebook or another page."""
        return render("fragment.html", view=self)


def view_of(
    lake: str | PathLike[str],
    stream: str | PathLike[str] | Stream,
    interval: Interval | None = None,
    key: Mapping[str, str] | str | None = None,
) -> View:
    """Return what a page shows of a stream.

    It is read again if a run publishes hours of the interval meanwhile, so that its parts agree.

    Args:
        lake: the folder or address with the tables of streams.
        stream: the stream, or the path of its file.
        interval: the hours. Default: the last 31 days of the requested hours.
        key: as of `parse_key`, or its result. Default: all keys.

    Raises:
        NothingToView: no run of the stream is in the lake.
        ValueError: as of `parse_key`.
        SpecificationError: the stream file is invalid.
    """
    results = read(lake, stream)
    of_key = parse_key(results.stream, key) if isinstance(key, str) else dict(key or {})
    ledger = _ledger(results)
    before, notices = _snapshot(results, ledger)
    chosen = _latest(results, before) if interval is None else _clamped(interval, before)
    if interval is None and chosen.start != _first(before):
        notices.append("The last 31 days of the requested hours.")
    for _ in range(ATTEMPTS):
        view = _view(results, before, chosen, of_key, list(notices))
        after = ledger.snapshot()
        if _states(before, chosen) == _states(after, chosen):
            return view
        before, notices = _snapshot(results, ledger)
    view.notices.append("A run is publishing hours of this page: its parts may be of different states.")
    return view


def parse_key(stream: Stream, text: str) -> dict[str, str]:
    """Return the columns of a key with their texts.

    Such as `10.0.0.1`, or `client=10.0.0.1, path=/`.

    Args:
        stream: the stream; a value without a column is that of its `key`, if this has one column.
        text: the key.

    Raises:
        ValueError: there is no such column.
    """
    known = sorted(stream.event_types)
    parts = [part.partition("=") for part in text.split(", ")]
    if all(separator and name in known for name, separator, _ in parts):
        return {name: value for name, _, value in parts}
    if len(stream.key) == 1 and not (parts[0][1] and parts[0][0].isidentifier()):
        return {stream.key[0]: text}
    hint = did_you_mean(parts[0][0], known)
    raise ValueError(f"key: must be COLUMN=VALUE with a column of {stream.name}; got {text!r}{hint}")


def _view(
    results: Results, snapshot: LedgerSnapshot, interval: Interval, key: Mapping[str, str], notices: list[str]
) -> View:
    stream = results.stream
    stages = definitions_of(stream).values()
    declared = {step.table.name: step.table for stage in stages for step in stage.steps}
    selection = Selection(results.root, stream, snapshot, interval, key, declared)
    findings, more = select_findings(results.root, MAX_FINDINGS, MAX_OF_BLOCK, FINDING_ORDER, interval, key)
    sections: list[Section] = []
    for feature in stream.features:
        if feature.view is not None and stream.blocks(feature.block):
            sections += (replace(part, feature=feature.name) for part in feature.view(selection))
    if key:
        sections.append(_events(selection))
    if not any(hour in interval for hour in snapshot.required_hours):
        notices.append(f"No run has requested an hour of {interval}.")
    of_hours = hours(stream, snapshot, results.freshness(snapshot), interval)
    return View(
        stream, interval, key, findings, more, of_hours, sections, list(quality.sections(selection)), notices
    )


def _events(selection: Selection) -> Section:
    """Return the last events of the selected key."""
    hours_of = selection.hours(SOURCE_STAGE, EVENTS, EVENTS)
    rows, total = selection.select(
        EVENTS, hours_of, order="event_time DESC, source_id, source_line", limit=MAX_ROWS
    )
    columns = [name for name in (rows[0] if rows else ()) if name != "hour" and not name.startswith("__")]
    return Section(
        "Events of the key",
        f"{counted(total, 'event')}, the last first." if rows else "No event in these hours.",
        DataTable.of(columns, ([row[column] for column in columns] for row in rows), total) if rows else None,
        None,
        EVENTS,
    )


def _ledger(results: Results) -> Ledger:
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(f"{results.root}/ledger"):
        raise NothingToView(f"no run of {results.stream.name} is in this lake: {results.root}")
    return Ledger(results.root, create=False)


def _snapshot(results: Results, ledger: Ledger) -> tuple[LedgerSnapshot, list[str]]:
    try:
        return snapshot_of(results.stream, ledger), []
    except LakeError as error:
        return ledger.snapshot(), [f"Waits: {error}."]


def _first(snapshot: LedgerSnapshot) -> object:
    return min((hour for hour in snapshot.required_hours if hour != UNKNOWN_HOUR), default=None)


def _latest(results: Results, snapshot: LedgerSnapshot) -> Interval:
    required = sorted(hour for hour in snapshot.required_hours if hour != UNKNOWN_HOUR)
    if not required:
        raise NothingToView(f"no run has requested an hour of {results.stream.name}: {results.root}")
    last = Interval.of_hour(required[-1])
    return Interval(max(required[0], last.end - LATEST), last.end)


def _clamped(interval: Interval, snapshot: LedgerSnapshot) -> Interval:
    """Return an interval; only its requested hours if it is too long."""
    if interval.end - interval.start <= LONGEST:
        return interval
    required = [hour for hour in snapshot.required_hours if hour in interval and hour != UNKNOWN_HOUR]
    return Interval(min(required), max(required) + HOUR) if required else Interval.of_hour(UNKNOWN_HOUR)


def _states(snapshot: LedgerSnapshot, interval: Interval) -> dict[object, object]:
    """Return what a run changes when it publishes."""
    return {partition: (state.status, state.run_id) for partition, state in snapshot.within(interval)}
