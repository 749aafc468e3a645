"""All that a page shows of a stream in an interval, read from one state of the lake."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike

from transom.charts.section import MAX_ROWS, Section
from transom.core.intervals import Interval, format_hour
from transom.core.partitions import SOURCE_STAGE
from transom.engine.selection import Selection
from transom.features.registry import FINDING_ORDER
from transom.findings.from_ledger import Finding
from transom.findings.store import about_sql, select_findings
from transom.stream import Stream
from transom.views import events, quality
from transom.views.block_titles import block_titles
from transom.views.finding_groups import FindingGroup, grouped
from transom.views.finding_text import FindingText
from transom.views.hours import HourGrid, hours
from transom.views.open_stream import NothingToView, OpenStream
from transom.views.render import render
from transom.views.results import sections
from transom.views.silences import Silences
from transom.views.typed_key import TypedKey, typed_key

__all__ = ["NothingToView", "View", "view_of"]

MAX_FINDINGS, MAX_OF_BLOCK = 200, 50
"""The maximum number of findings: in total, and per kind and block."""


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
        text: the texts of the findings.
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
    text: FindingText
    notices: list[str] = field(default_factory=list)

    @property
    def silences(self) -> Silences:
        """The silences of the stream that hold back messages now."""
        return Silences(self.stream)

    @property
    def groups(self) -> list[FindingGroup[Finding]]:
        """The findings, those of the same key or item together."""
        return grouped(self.findings, lambda finding: finding, lambda finding: None)

    @property
    def block_titles(self) -> Mapping[str, Mapping[str, str]]:
        """The short titles of blocks, by feature."""
        return block_titles(self.stream)

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
        key: the text of each of its columns, or a text as of `typed_key`. Default: all keys.

    Raises:
        NothingToView: no run of the stream is in the lake.
        ValueError: as of `typed_key` and `OpenStream.key_of`.
        SpecificationError: the stream file is invalid.
    """
    opened = OpenStream(lake, stream)
    start, end = (None, None) if interval is None else (interval.start, interval.end)
    chosen, notices = opened.interval_of(start, end)
    typed = typed_key(opened, key, chosen) if isinstance(key, str) else TypedKey(key or {})
    view, more = opened.consistent(chosen, typed.columns, 1, lambda selection: _view(opened, selection))
    if not any(hour in chosen for hour in opened.snapshot().required_hours):
        notices.append(f"No run has requested an hour of {chosen}.")
    return replace(view, notices=[*typed.notices, *notices, *more])


def _view(opened: OpenStream, selection: Selection) -> View:
    stream, interval, key = opened.stream, selection.interval, selection.key
    freshness = opened.freshness(selection.snapshot)
    selection = replace(selection, stale={stage: freshness.stale(stage) for stage in stream.stages})
    findings, more = select_findings(
        opened.tables.root, MAX_FINDINGS, MAX_OF_BLOCK, FINDING_ORDER, interval, about_sql(stream, key)
    )
    results = sections(selection)
    if key:
        results.append(events.of_key(selection, MAX_ROWS))
    grid = hours(stream, selection.snapshot, freshness, interval)
    text = FindingText(stream, selection.snapshot)
    return View(stream, interval, key, findings, more, grid, results, quality.sections(selection), text)
