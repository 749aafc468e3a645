"""The routes of the pages. Handlers are plain functions: they read files, and run in threads."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import StreamingResponse

from transom.charts.section import DataTable, Section
from transom.core.intervals import Interval
from transom.core.locations import lake
from transom.core.terminal import counted
from transom.engine.selection import Selection
from transom.findings.from_ledger import SEVERITIES
from transom.views import events, quality, results
from transom.views.block_titles import block_titles, full_title
from transom.views.finding import finding_of
from transom.views.finding_text import FindingText
from transom.views.findings import ANSWERS, STATES, FindingFilter, findings_of, table_of
from transom.views.hour import events_text, files_text, hour_detail, neighbours
from transom.views.hour_history import hour_history
from transom.views.key import key_of
from transom.views.open_stream import OpenStream
from transom.views.run_changes import run_changes
from transom.views.runs import run_of
from transom.views.stream_hours import PATIENCE, StreamHours
from transom.web import csv
from transom.web.links import Links, hours_of
from transom.web.open_streams import OpenStreams
from transom.web.parameters import LONGEST, MAX_PAGE, End, PageNumber, Start, interval, key_in, one_of, rules
from transom.web.parameters import hour as parse_hour
from transom.web.render import ASSETS, KEPT, asset, links_of, page
from transom.web.summary import legend, summary_of

CHUNK = 500
"""The number of lines of a file that are sent at once."""


@dataclass
class Visit:
    """A request for a page of a stream.

    Attributes:
        request: the request.
        opened: the stream.
        hours: the states of its hours.
        file: its file.
        start: the parameter `from`.
        end: the parameter `to`.
        number: the page of each table, from 1.
        notices: what a reader should know about the page as a whole.
        last: the greatest number of a page.
    """

    request: Request
    opened: OpenStream
    hours: StreamHours
    file: Path
    start: str | None
    end: str | None
    number: int
    notices: list[str] = field(default_factory=list)
    last: ClassVar[int] = MAX_PAGE

    @property
    def links(self) -> Links:
        """The addresses of the stream's pages; they keep the hours that were given."""
        return links_of(self.request, self.opened.stream.name, **{"from": self.start, "to": self.end})

    @property
    def is_file(self) -> bool:
        """Whether a download is requested, which shows no notices."""
        return self.request.url.path.endswith(".csv")

    def interval(self, longest: timedelta | None = LONGEST) -> Interval:
        """Return the hours of the page; raises as `parameters.interval`."""
        # A file with a part of the hours would not show it.
        chosen, notices = interval(self.opened, self.start, self.end, longest, may_cut=not self.is_file)
        if longest is not None and (self.start or self.end) and notices:
            # The links of the page lead to the hours that it shows.
            self.start, self.end = hours_of(chosen).values()
        self.note(*self.opened.notices(), *notices)
        return chosen

    def note(self, *notices: str) -> None:
        """Add what a reader should know, each text once."""
        self.notices += [text for text in dict.fromkeys(notices) if text not in self.notices]

    def stale(self, interval: Interval) -> Mapping[str, Sequence[datetime]]:
        """Return the stale hours of each stage that are known now, and add a notice about them."""
        stale, notice = self.hours.stale(interval)
        texts = [f"{counted(len(hours), 'hour')} of {stage}" for stage, hours in stale.items() if hours]
        if texts:
            self.note(f"Stale, so a run computes them again: {', '.join(texts)}. Hours has the causes.")
        self.note(*([notice] if notice else []))
        return stale

    def read(
        self, view: Callable[[Selection], list[Section]], key: Mapping[str, str] | None = None
    ) -> tuple[Interval, list[Section]]:
        """Return the hours of the page and sections about them, read from one state of the lake."""
        interval = self.interval()
        stale = {} if self.is_file else self.stale(interval)
        sections, notices = self.opened.consistent(interval, key or {}, self.number, view, stale)
        self.note(*notices)
        return interval, sections

    def key(self, subject: Sequence[str] = ()) -> Mapping[str, str]:
        """Return the key of the address, with a notice if a column was chosen; arguments as of `typed_key`.

        Raises:
            BadInput: as of `parameters.key_in` and `parameters.interval`.
        """
        typed = key_in(self.request, self.opened, self.interval(), subject)
        self.note(*typed.notices)
        return typed.columns

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        stream = self.opened.stream
        return page(
            self.request, template, status, links=self.links, stream=stream, visit=self,
            blocks=block_titles(stream),
            tab=template.removesuffix(".html"), changed_at=self.opened.changed_at(),
            text=FindingText(stream, self.opened.snapshot()), **values,
        )  # fmt: skip

    def other_page(self, number: int) -> str:
        """Return the address of another page of the same tables, relative to this one."""
        return f"?{self.request.url.include_query_params(page=number).query}"

    @property
    def latest(self) -> str:
        """The address of the same page of the latest hours, relative to this one; key and filters stay."""
        return f"?{self.request.url.remove_query_params(['from', 'to', 'page']).query}"

    def csv(self, table: DataTable | None, *names: str) -> Response:
        """Return a table as a file for spreadsheets.

        Raises:
            HTTPException: there is no table.
        """
        if table is None:
            raise HTTPException(404, "There is no such table in these hours.")
        name = "-".join([self.opened.stream.name, *names])
        # A chunk is a task of the event loop of Airflow's API server; a file may have 100,000 lines.
        lines = csv.lines(table)
        chunks = iter(lambda: "".join(islice(lines, CHUNK)).encode("utf-8", "replace"), b"")
        disposition = f'attachment; filename="{name}.csv"'
        return StreamingResponse(
            chunks, media_type="text/csv; charset=utf-8", headers={"Content-Disposition": disposition}
        )


def common_routes(
    streams: OpenStreams,
    user: Callable[..., Any],
    readable: Callable[[Any, Collection[str]], Collection[str]],
    place: Any,
) -> APIRouter:
    """Return the routes that are about no stream alone.

    Args:
        streams: the streams.
        user: as of `app.Access`.
        readable: as of `app.Access`.
        place: the dependency of a page on a place among those that are made at once.
    """
    router = APIRouter()

    @router.get("/", dependencies=[place])
    def all_streams(request: Request, who: Annotated[Any, Depends(user)]) -> Response:
        """Show the streams that the user may read."""
        names = sorted(readable(who, streams.names()))
        until = time.monotonic() + PATIENCE
        summaries = [summary_of(streams, name, max(until - time.monotonic(), 0.0)) for name in names]
        return page(request, "streams.html", summaries=summaries, legend=legend(summaries))

    @router.get("/static/{name}")
    def static(name: str) -> Response:
        """Return a file of the pages."""
        if name not in ASSETS:
            raise HTTPException(404, "There is no such file.")
        return Response(asset(name), media_type=ASSETS[name], headers={"Cache-Control": KEPT})

    return router


def stream_routes(streams: OpenStreams) -> APIRouter:
    """Return the routes below a stream. The caller adds the permission to read the stream."""
    router = APIRouter(prefix="/streams/{dag_id}")

    def visited(
        request: Request, dag_id: str, start: Start = None, end: End = None, page: PageNumber = 1
    ) -> Visit:
        return Visit(request, *streams.opened(dag_id), streams.file(dag_id), start, end, page)

    _add_findings(router, visited)
    _add_hours(router, visited)
    _add_results(router, visited)
    return router


def _add_findings(router: APIRouter, visited: Callable[..., Visit]) -> None:
    OfVisit = Annotated[Visit, Depends(visited)]

    def filter_in(
        visit: OfVisit,
        state: str | None = None,
        severity: str | None = None,
        kind: str | None = None,
        block: str | None = None,
        silenced: str | None = None,
    ) -> FindingFilter:
        return FindingFilter(
            visit.interval(),
            visit.key(),
            one_of("state", state, STATES),
            one_of("severity", severity, SEVERITIES),
            kind or None,
            block or None,
            one_of("silenced", silenced, ANSWERS),
        )

    OfFilter = Annotated[FindingFilter, Depends(filter_in)]

    @router.get("")
    def findings(visit: OfVisit, filters: OfFilter) -> Response:
        """Show the findings of an interval."""
        found = findings_of(visit.opened, filters, visit.number)
        return visit.page(
            "findings.html", interval=filters.interval, found=found, filters=filters, states=STATES
        )

    @router.get("/findings.csv")
    def findings_csv(visit: OfVisit, filters: OfFilter) -> Response:
        """Return the findings of an interval as a file."""
        return visit.csv(table_of(visit.opened, filters), "findings")

    @router.get("/findings/{finding_id:path}")
    def finding(visit: OfVisit, finding_id: str) -> Response:
        """Show a finding."""
        detail = finding_of(visit.opened, finding_id)
        if detail is None:
            rule = "It may have been withdrawn, as late data changed the rows, or the address is wrong."
            raise HTTPException(404, f"There is no such finding. {rule}")
        return visit.page("finding.html", detail=detail, hours=detail.hours)


def _add_hours(router: APIRouter, visited: Callable[..., Visit]) -> None:
    OfVisit = Annotated[Visit, Depends(visited)]

    @router.get("/hours")
    def grid(visit: OfVisit) -> Response:
        """Show the state of each stage by hour."""
        interval = visit.interval(longest=None)
        return visit.page("hours.html", interval=interval, grid=visit.hours.grid(interval))

    @router.get("/hours.csv")
    def grid_csv(visit: OfVisit, part: str = "attention") -> Response:
        """Return a table of the grid as a file."""
        tables = visit.hours.grid(visit.interval(longest=None), patience=None)
        name = one_of("part", part, ("attention", "counts"))
        return visit.csv(tables.counts if name == "counts" else tables.attention, "hours")

    @router.get("/hours/{hour}")
    def hour(visit: OfVisit, hour: str) -> Response:
        """Show the state of an hour, its cause, and what to run."""
        with rules():
            interval = Interval.of_hour(parse_hour(hour, "hour"))
        opened = visit.opened
        visit.note(*opened.notices())
        # The menu leads to pages of this hour.
        visit.start, visit.end = hours_of(interval).values()
        history, notices = opened.consistent(interval, {}, 1, partial(hour_history, hour=interval.start))
        lines, _ = opened.consistent(interval, {}, 1, events.of_hour)
        visit.note(*notices)
        freshness = opened.freshness(opened.snapshot())
        around = neighbours(interval.start, freshness.snapshot.required_hours.numbers)
        detail = hour_detail(opened.stream, visit.file, lake(), opened.ledger, freshness, interval.start)
        is_known = {stage.state for stage in detail.stages} != {"none"}
        facts = {"events": events_text(opened, interval.start), "files": files_text(opened, interval.start)}
        return visit.page(
            "hour.html", 200 if is_known else 404, interval=interval, detail=detail, history=history,
            facts=facts, events=lines, around=around,
        )  # fmt: skip

    @router.get("/runs/{name:path}")
    def run(visit: OfVisit, name: str) -> Response:
        """Show what a run changed."""
        opened = visit.opened
        visit.note(*opened.notices())
        selection = opened.selection(visit.interval())
        found = run_of(selection, name)
        if found is None:
            raise HTTPException(
                404, "The lake has no run of this name: it is active, was killed, or is mistyped."
            )
        visit.start, visit.end = hours_of(found.interval).values()
        changes = run_changes(selection, found, opened.freshness(opened.snapshot()))
        return visit.page("run.html", interval=found.interval, changes=changes)


def _add_results(router: APIRouter, visited: Callable[..., Visit]) -> None:
    OfVisit = Annotated[Visit, Depends(visited)]

    def block_of(
        visit: OfVisit, feature: str, block: str, order: str | None = None
    ) -> tuple[Interval, list[Section], Mapping[str, str]]:
        stream = visit.opened.stream
        names = {feature.name: feature for feature in stream.features}
        if feature not in names or block not in stream.blocks(names[feature].block):
            raise HTTPException(404, f"The stream {stream.name} has no such block.")

        def of_block(selection: Selection) -> list[Section]:
            return results.sections(replace(selection, order=order or ""), feature, block)

        key = visit.key(names[feature].subject(stream, block))
        interval, sections = visit.read(of_block, key)
        one_of("order", order, [*sections[0].orders] if sections else [])
        return interval, sections, key

    OfBlock = Annotated[tuple[Interval, list[Section], Mapping[str, str]], Depends(block_of)]

    @router.get("/results/{feature}/{block}.csv")
    def block_csv(visit: OfVisit, of_block: OfBlock, feature: str, block: str) -> Response:
        """Return the results of a block as a file."""
        return visit.csv(_part(of_block[1], f"part-{feature}-{block}"), feature, block)

    @router.get("/results/{feature}/{block}")
    def block(
        visit: OfVisit, of_block: OfBlock, feature: str, block: str, order: str | None = None
    ) -> Response:
        """Show the results of a block."""
        interval, sections, key = of_block
        return visit.page(
            "block.html", interval=interval, sections=sections, feature=feature, block=block,
            key=key, order=order or None, title=_title(visit, feature, block),
        )  # fmt: skip

    def quality_parts(visit: OfVisit, check: str | None = None) -> tuple[Interval, list[Section], list[str]]:
        checks = sorted({gate.name for gate in visit.opened.stream.gates})
        chosen = one_of("check", check, checks)
        return *visit.read(partial(quality.sections, check=chosen)), checks

    OfQuality = Annotated[tuple[Interval, list[Section], list[str]], Depends(quality_parts)]

    @router.get("/quality")
    def of_quality(visit: OfVisit, parts: OfQuality, check: str | None = None) -> Response:
        """Show checks, lines and runs."""
        interval, sections, checks = parts
        return visit.page("quality.html", interval=interval, sections=sections, checks=checks, check=check)

    @router.get("/quality.csv")
    def quality_csv(visit: OfVisit, parts: OfQuality, part: str = "") -> Response:
        """Return a table of the page of quality as a file."""
        return visit.csv(_part(parts[1], part), "quality")

    @router.get("/key")
    def key(visit: OfVisit) -> Response:
        """Show what is known of a key."""
        interval, chosen = visit.interval(), visit.key()
        if not chosen:
            return visit.page("key.html", interval=interval, key=chosen, view=None)
        with rules():
            view = key_of(visit.opened, chosen, interval, visit.number, visit.stale(interval))
        visit.note(*view.notices)
        return visit.page("key.html", interval=interval, key=chosen, view=view)

    @router.get("/key.csv")
    def key_csv(visit: OfVisit, part: str = "") -> Response:
        """Return a table of the page of a key as a file."""
        with rules():
            view = key_of(visit.opened, visit.key(), visit.interval())
        return visit.csv(_part(view.sections, part), "key")


def _title(visit: Visit, feature: str, block: str) -> str:
    stream = visit.opened.stream
    return next(full_title(stream, of, block) for of in stream.features if of.name == feature)


def _part(sections: Iterable[Section], anchor: str) -> DataTable | None:
    """Return the table of the section with an id; of the first one that has a table without an id."""
    return next(
        (part.download for part in sections if part.download is not None and anchor in ("", part.anchor)),
        None,
    )
