"""Why an hour is as it is, in words."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from deltalake import DeltaTable

from transom.cli.freshness import Freshness
from transom.intervals import HOUR, NO_HOUR, format_hour, ranges
from transom.lake.book import STANDS, Entry, Node
from transom.lake.gate import words
from transom.lake.ledger import Ledger
from transom.lake.staleness import CHECKS
from transom.lake.tables import read_rows
from transom.stages.files import File
from transom.stages.landing import listed
from transom.stages.scene import file_shape
from transom.stream import Stream

OWN = {
    "specification": "the stream's file says something else of it than when it was computed",
    "version": "transom computes it otherwise since",
    "completeness": "what decides whether it is complete has changed: a check, `expect`, or an `accept`",
    CHECKS: "its checks, or what is accepted of them, have changed since they withheld it",
}
"""Inputs that are no table."""
MOST = 5


class Reasons:
    """What is said of one hour.

    Attributes:
        lines: in words, stage by stage.
        troubled: whether something of it is not fresh.
        stretch: the first and the last hour that have to be run to mend it.
        advice: what to do.
    """

    def __init__(self, stream: Stream, ledger: Ledger, hour: datetime) -> None:
        self.stream, self.ledger, self.hour = stream, ledger, hour
        self.book = ledger.book()
        self.fresh = Freshness(stream, self.book)
        self.troubled = False
        self.advice = "to run it"
        self._hours = {hour}
        self._finished = {run["run_id"]: run["finished_at"] for run in ledger.runs()}
        self.lines = [line for stage in stream.stages for line in self._stage(stage)]

    @property
    def stretch(self) -> tuple[datetime, datetime]:
        """The hours to run, the first and the last."""
        return min(self._hours), max(self._hours)

    def _stage(self, stage: str) -> Iterator[str]:
        if self.hour not in self.book.hours(stage):
            held = [node for node in self.book if node.stage == stage and node.hour == self.hour]
            rows = sum(self.book[node].rows for node in held if node.table == "events")
            beside = f"; files of other hours have put {rows} events in it" if rows else ""
            self.troubled = True
            yield f"{stage}: nobody has asked for it, so it counts as empty{beside}"
            return
        for node in self.fresh.nodes(stage, self.hour):
            name = f"{node.stage} {node.block}" + (f", {node.table}" if stage != "ingest" else "")
            entry = self.book.get(node)
            if entry is None:
                self.troubled = True
                yield f"{name}: stale: the block has come since the hour was computed"
                continue
            told = list(self._node(node, entry))
            self.troubled |= bool(told)
            when = self._when(entry)
            by = f"run {entry.run_id}" + (f", {when:%Y-%m-%d %H:%M}" if when else "")
            state: str = entry.status
            state += "" if entry.complete or entry.status != "published" else ", incomplete"
            state += ", stale" if self.fresh.differs(node) else ""
            yield f"{name}: {state}, {entry.rows} rows, by {by}"
            yield from (f"  {line}" for line in told)

    def _node(self, node: Node, entry: Entry) -> Iterator[str]:
        if entry.status == "writing":
            yield "a run has begun to write it and has not published it: it is at work, or was killed"
        differs = self.fresh.differs(node)
        if differs and entry.inputs is None:
            yield "what it was made of cannot be told: rows of several specifications, or of a killed run"
        else:
            yield from (self._input(node, entry, name) for name in differs)
        if entry.status == "quarantined":
            self.advice = "mend the data, or accept the value in the stream's file, then run"
            yield f"withheld, what was published before stays: {entry.cause}"
            yield from self._verdicts(node)
        elif entry.status == "blocked":
            yield f"not computed: {entry.cause}"
        elif not entry.complete:
            yield f"something is missing: {entry.cause}"
        if entry.status == "blocked" or (not entry.complete and entry.status in STANDS):
            yield from self._roots(node)

    def _input(self, node: Node, entry: Entry, name: str) -> str:
        if name == "version":
            held, now = (entry.inputs or {}).get(name), (self.fresh.expected(node) or {}).get(name)
            return f"{OWN[name]}: version {held} then, {now} now"
        if name in OWN:
            return OWN[name]
        reads = [read for read in self.fresh.reads(node) if read.table == name]
        hours = [read.hour for read in reads]
        since = [read.hour for read in reads if self._later(read, entry)]
        self._hours.update(since)
        which = f", {_stretches(since)} written since" if since else ""
        return (
            f"the rows of {name} that it is computed from are others now: it reads {_stretches(hours)}{which}"
        )

    def _later(self, read: Node, entry: Entry) -> bool:
        """Whether a node was written after what is computed from it."""
        held = self.book.get(read)
        if held is None:
            return False
        mine, theirs = self._when(entry), self._when(held)
        return mine is not None and theirs is not None and theirs > mine

    def _when(self, entry: Entry) -> datetime | None:
        """When the run ended that a node is of; a chunk of it goes by the run's name and a number."""
        run, _, _ = entry.run_id.rpartition(" ")
        return self._finished.get(entry.run_id) or self._finished.get(run)

    def _verdicts(self, node: Node) -> Iterator[str]:
        for verdict in self.ledger.checks(self.book, node.stage, {node.hour}):
            same = (verdict.node.block, verdict.node.table) == (node.block, node.table)
            if same and not verdict.success and verdict.severity == "error":
                yield from words(verdict).split("\n")

    def _roots(self, node: Node) -> Iterator[str]:
        roots = [root for root in self.fresh.roots(node) if root != node]
        self._hours.update(root.hour for root in roots if root.hour != NO_HOUR)
        by_cause: dict[tuple[str, str, str], list[datetime]] = {}
        for root in roots:
            entry = self.book[root]
            state = "incomplete" if entry.status in STANDS else str(entry.status)
            if state == "quarantined":
                self.advice = "mend the data, or accept the value in the stream's file, then run"
            by_cause.setdefault((f"{root.stage} {root.block}", state, entry.cause or ""), []).append(
                root.hour
            )
        for (name, state, cause), hours in list(by_cause.items())[:MOST]:
            yield f"because {name} {_stretches(hours)} is {state}{f': {cause}' if cause else ''}"
        if len(by_cause) > MOST:
            yield f"and for {len(by_cause) - MOST} further causes"

    def files(self) -> list[str]:
        """What has changed in the landing folder since, of the files of this hour.

        Raises:
            LandingError: the folder cannot be listed.
        """
        uri = f"{self.ledger.root}/files"
        rows = read_rows(DeltaTable(uri)) if DeltaTable.is_deltatable(uri) else []
        known = {file.path: file for file in map(File.of_row, rows)}
        there = listed(self.stream.path_pattern)
        lines = []
        for path in sorted(known.keys() | there.keys()):
            file, now = known.get(path), there.get(path)
            if file is None:
                if now is not None and self.hour in now.named:
                    lines.append(f"file {path}: new, {now.size} bytes; no run has seen it")
                elif now is not None and now.start is None:
                    lines.append(f"file {path}: new, no run has seen it; its hours are known when it is read")
            elif self.hour in file.touched:
                # Taken, or read again, with all its hours.
                if file.status == "waiting" or (now and file.shape != file_shape(self.stream, file.hour)):
                    self._hours |= file.touched - {NO_HOUR}
                if file.status in ("waiting", "withheld", "conflict"):
                    lines.append(f"file {path}: {file.status}: {file.detail}")
                elif now is None and file.status != "gone":
                    lines.append(f"file {path}: gone; its rows stay")
                elif now is not None and (file.size, file.modified) != (now.size, now.modified):
                    lines.append(
                        f"file {path}: changed, {now.size} bytes of {now.modified:%Y-%m-%d %H:%M:%S} now, "
                        f"{file.size} of {file.modified:%Y-%m-%d %H:%M:%S} when it was read"
                    )
        return lines


def _stretches(hours: Sequence[datetime]) -> str:
    return ", ".join(
        format_hour(s.start) if len(s) == 1 else f"{format_hour(s.start)} to {format_hour(s.end - HOUR)}"
        for s in ranges(hours)
    )
