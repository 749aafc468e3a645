"""Why an hour is as it is, in words."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property

from transom.app.freshness import reason, snapshot_of
from transom.cli.explain_changes import own_input, rows
from transom.cli.file_remarks import known_files, remarks_of_hour
from transom.cli.freshness import Freshness
from transom.cli.lake_argument import TRY_CAUSE
from transom.core.intervals import UNKNOWN_HOUR, format_hours
from transom.core.partitions import READABLE, PartitionKey, PartitionState
from transom.core.terminal import counted
from transom.engine.gate_text import format_check_result
from transom.features.ingest.file_records import FileRecord, ListedFile
from transom.features.ingest.landing import list_files
from transom.features.ingest.periods import Periods
from transom.features.ingest.specified import STAGE, Specified, node_of, scheduled
from transom.ledger.ledger import Ledger
from transom.ledger.waivers import entries_of, entry_for, format_waived, near_misses
from transom.spec.stream import Stream

REMEDY = "mend the data, or accept the value in the stream's file"
MAX_SHOWN = 5


class HourExplanation:
    """What is said of one hour.

    Attributes:
        lines: in words, stage by stage.
        troubled: whether something of it is not fresh.
    """

    def __init__(self, stream: Stream, ledger: Ledger, hour: datetime) -> None:
        self.stream, self.ledger, self.hour = stream, ledger, hour
        self.book = snapshot_of(stream, ledger)
        self.fresh = Freshness(stream, self.book)
        self.troubled = False
        self._withheld: set[PartitionKey] = set()
        self._below: list[str] = []
        self._said: set[str] = set()
        self._at_work: str | None = None
        self._mend = REMEDY
        # Whether a run changes anything before a file comes.
        self._to_run = self._missing = False
        self._hours = {hour}
        runs = ledger.runs()
        self._finished = {run["run_id"]: run["finished_at"] for run in runs}
        # Its files lay under other names, which are gone; what lies in the landing folder is another matter.
        self._tried = bool(runs) and all(run["cause"] == TRY_CAUSE for run in runs)
        self.lines = [line for stage in stream.stages for line in self._stage(stage)]
        if self._tried:
            self.lines.append("files: not looked at, as `transom try` has made this lake")

    @property
    def run_interval(self) -> tuple[datetime, datetime]:
        """The hours to run, the first and the last."""
        return min(self._hours), max(self._hours)

    @property
    def advice(self) -> str:
        """What to do; once `files` has been asked, by what is there."""
        if self._at_work:
            return f"nothing is to be done while run {self._at_work} is at work; if it was killed, run"
        if self._withheld:
            return f"{self._mend}, then run"
        if self._missing and not self._to_run:
            return "a run changes nothing before the file is there; then run"
        return "to run it"

    def _stage(self, stage: str) -> Iterator[str]:
        at_work = self._unfinished(stage)
        if self.hour not in self.book.hours(stage):
            self.troubled = self._to_run = True
            if at_work:
                self._at_work = at_work
                yield f"{stage}: not computed yet; run {at_work} is at work, or was killed"
                return
            if self.hour in self.book.required_hours:
                yield f"{stage}: stale: ingest has been asked for it, and {stage} has not run since"
                return
            held = [node for node in self.book if node.stage == stage and node.hour == self.hour]
            events = sum(self.book[node].rows for node in held if node.table == "events")
            beside = f"; files of other hours have put {counted(events, 'event')} in it" if events else ""
            yield f"{stage}: nobody has asked for it, so it counts as empty{beside}"
            return
        nodes = [*self.fresh.nodes(stage, self.hour), *self.fresh.gone(stage, self.hour)]
        nodes += [node for node in self.fresh.damaged.get((stage, self.hour), ()) if node not in nodes]
        for node in nodes:
            of_table = "" if (stage, node.table) == ("ingest", "events") else f", {node.table}"
            name = f"{node.stage} {node.block}{of_table}"
            entry = self.book.get(node)
            if entry is None:
                yield from self._because()
                self.troubled = self._to_run = True
                if at_work:
                    self._at_work = at_work
                    yield f"{name}: not computed yet; run {at_work} is at work, or was killed"
                else:
                    yield f"{name}: stale: {self._absent(node)}"
                continue
            told = list(self._node(node, entry))
            self.troubled |= bool(told)
            when = self._when(entry)
            by = f"run {entry.run_id}" + (f", {when:%Y-%m-%d %H:%M}" if when else "")
            state: str = entry.status
            state += "" if entry.complete or entry.status != "published" else ", incomplete"
            direct = self.fresh.differs(node) or self.fresh.stale_state(node)
            stale = bool(direct or self.fresh.root(node))
            state += ", stale" if stale else ""
            self._to_run |= stale or entry.status not in READABLE
            head = f"{name}: {state}, {counted(entry.rows, 'row')}, by {by}"
            # Tables that are as they are for one cause stand together, and the cause below them.
            if told != self._below:
                yield from self._because()
                self._below = told
            yield head
        yield from self._because()
        yield from self._accepted(stage)

    def _because(self) -> Iterator[str]:
        """What is said of the tables above, once; what has been said of others before is not repeated."""
        said, self._below = self._below, []
        new = [line for line in said if line not in self._said]
        self._said.update(said)
        yield from (f"  {line}" for line in new)
        if len(new) < len(said):
            yield "  and as above" if new else "  as above"

    def _accepted(self, stage: str) -> Iterator[str]:
        """The failed checks of the hour that somebody lets pass."""
        for verdict in self.ledger.accepted(self.book, stage):
            if verdict.node.hour == self.hour:
                yield f"  {format_waived(verdict)}"

    def _unfinished(self, stage: str) -> str | None:
        """A run that has published or begun some of the hour, of the stage or of one before it, and that has
        not ended: it will come to the rest, or was killed."""
        stages = self.stream.stages[: self.stream.stages.index(stage) + 1]
        for node, entry in sorted(self.book.items()):
            mine = node.hour == self.hour and node.stage in stages
            if mine and entry.asked and self._when(entry) is None:
                return entry.run_id
        return None

    def _absent(self, node: PartitionKey) -> str:
        """Why a node is not there, of an hour of which others are."""
        beside = (other for other in self.book if (other.stage, other.hour) == (node.stage, node.hour))
        if any(other.table == node.table for other in beside):
            return "the block has come since the hour was computed"
        return "it has not been computed"

    def _of_stale(self, node: PartitionKey) -> Iterator[str]:
        """Which state that a node is computed from is out of date."""
        by_table: dict[str, list[datetime]] = {}
        for state in filter(self.book.__contains__, self.fresh.stale_state(node)):
            by_table.setdefault(state.table, []).append(state.hour)
        for table, hours in by_table.items():
            which = "" if hours == [node.hour] else f" of {format_hours(hours)}"
            yield f"the {table}{which} that it is computed from are stale"

    def _node(self, node: PartitionKey, entry: PartitionState) -> Iterator[str]:
        if entry.status == "writing":
            self._at_work = entry.run_id
            yield "a run has begun to write it and has not published it: it is at work, or was killed"
        if entry.status == "damaged":
            yield f"its rows are damaged; a run over the hour makes them again: {entry.cause}"
            if node.stage == STAGE:
                # Files are taken whole.
                files = [file for file in self._known if file.source_id and self.hour in file.touched]
                self._hours |= frozenset().union(*(file.touched for file in files)) - {UNKNOWN_HOUR}
        differs = self.fresh.differs(node)
        if differs and entry.inputs is None:
            yield "what it was made of cannot be told: rows of several specifications, or of a killed run"
        else:
            yield from (self._input(node, entry, name) for name in differs)
        yield from self._of_stale(node)
        root = self.fresh.root(node)
        if root is not None and root != node and root.stage != node.stage:
            self._hours.add(root.hour)
            yield f"computed from what is stale in turn: {reason(root, self.book)}"
        if entry.status == "quarantined":
            self._withheld.add(node)
            yield f"withheld, what was published before stays: {entry.cause}"
            yield from self._verdicts(node)
        elif entry.status == "blocked":
            yield f"not computed: {entry.cause}"
        elif not entry.complete:
            yield f"something is missing: {entry.cause}"
            yield from self._acceptances(node)
        if entry.status == "blocked" or (not entry.complete and entry.status in READABLE):
            yield from self._roots(node)

    def _input(self, node: PartitionKey, entry: PartitionState, name: str) -> str:
        own = own_input(self.fresh, node, name)
        if own is not None:
            return own
        reads = [read for read in self.fresh.reads(node) if read.table == name]
        unmade = [
            read.hour
            for read in reads
            if read not in self.book
            and read.hour in self.book.required_hours_of(read.stage, read.block, read.table)
        ]
        if unmade:
            return f"the {name} of {format_hours(unmade)}, which it reads, have not been computed"
        hours = [read.hour for read in reads]
        since = [read.hour for read in reads if self._later(read, entry)]
        self._hours.update(since)
        return rows(name, hours, since)

    def _later(self, read: PartitionKey, entry: PartitionState) -> bool:
        """Whether a node was written after what is computed from it."""
        held = self.book.get(read)
        if held is None:
            return False
        mine, theirs = self._when(entry), self._when(held)
        return mine is not None and theirs is not None and theirs > mine

    def _when(self, entry: PartitionState) -> datetime | None:
        """When the run ended that a node is of; a chunk of it goes by the run's name and a number."""
        run, _, _ = entry.run_id.rpartition(" ")
        return self._finished.get(entry.run_id) or self._finished.get(run)

    def _verdicts(self, node: PartitionKey) -> Iterator[str]:
        verdicts = self.ledger.checks(self.book, node.stage, {node.hour})
        for verdict in verdicts:
            same = (verdict.node.block, verdict.node.table) == (node.block, node.table)
            if same and not verdict.success and verdict.severity == "error":
                built_in = self.stream.built_in.get(verdict.check)
                self._mend = (built_in and built_in.mended) or self._mend
                yield from format_check_result(verdict).split("\n")
                yield from near_misses(verdict, entries_of(self.stream.accept), verdicts)
                entry = None if built_in and built_in.mended else entry_for(verdict)
                if entry:
                    yield f"to accept it, add this to accept in the stream file: {entry}"

    def _acceptances(self, node: PartitionKey) -> Iterator[str]:
        """What counts an hour as complete although something is missing."""
        for verdict in self.ledger.checks(self.book, node.stage, {node.hour}):
            same = (verdict.node.block, verdict.node.table) == (node.block, node.table)
            if same and not verdict.success and verdict.severity == "incomplete":
                yield from near_misses(verdict, entries_of(self.stream.accept), ())
                entry = entry_for(verdict)
                if entry:
                    yield f"if it never comes, add this to accept in the stream file: {entry}"

    def _roots(self, node: PartitionKey) -> Iterator[str]:
        roots = [root for root in self.fresh.roots(node) if root != node]
        self._hours.update(root.hour for root in roots)
        by_cause: dict[tuple[str, str, str], list[datetime]] = {}
        for root in roots:
            entry = self.book[root]
            state = "incomplete" if entry.status in READABLE else str(entry.status)
            if state == "quarantined":
                self._withheld.add(root)
            by_cause.setdefault((f"{root.stage} {root.block}", state, entry.cause or ""), []).append(
                root.hour
            )
        for (name, state, cause), hours in list(by_cause.items())[:MAX_SHOWN]:
            yield f"because {name} {format_hours(hours)} is {state}{f': {cause}' if cause else ''}"
        if len(by_cause) > MAX_SHOWN:
            yield f"and for {len(by_cause) - MAX_SHOWN} further causes"

    @cached_property
    def _known(self) -> list[FileRecord]:
        return known_files(self.ledger.root)

    def remarks(self) -> list[str]:
        """Return what a person should know of the hour's files; nothing of it makes the hour less fresh."""
        return remarks_of_hour(
            self.stream, sorted(self._known, key=lambda file: file.path), self.book, self.hour
        )

    def files(self) -> list[str]:
        """What has changed in the landing folder since, of the files of this hour.

        Raises:
            LandingError: the folder cannot be listed.
        """
        if self._tried:
            return []
        known = {file.path: file for file in self._known}
        there = list_files(self.stream.path_pattern)
        self._remedy(known, there)
        shape = Specified(self.stream).shape
        lines = list(self._expected(there))
        self._missing = bool(lines)
        expected = len(lines)
        for path in sorted(known.keys() | there.keys()):
            file, now = known.get(path), there.get(path)
            if file is None:
                if now is not None and self.hour in now.named:
                    lines.append(f"file {path}: new, {now.size} bytes; no run has seen it")
                elif now is not None and now.start is None:
                    lines.append(f"file {path}: new, no run has seen it; its hours are known when it is read")
            elif self.hour in file.touched:
                # Taken, or read again, with all its hours.
                if file.status == "waiting" or (now and file.shape != shape(file.hour)):
                    self._hours |= file.touched - {UNKNOWN_HOUR}
                if file.status == "withheld":
                    self._hours |= {file.hour} - {UNKNOWN_HOUR}
                changed = _changed(file, now)
                if file.status in ("waiting", "withheld", "conflict"):
                    lines.append(f"file {path}: {file.status}: {file.detail}{changed and f'; {changed}'}")
                elif changed and (now is not None or file.status != "gone"):
                    lines.append(f"file {path}: {changed}")
        self._to_run |= len(lines) > expected
        return lines

    def _expected(self, there: Mapping[str, ListedFile]) -> Iterator[str]:
        """The files that the hour ought to have, and has not."""
        expected, pattern = self.stream.source.expect or 0, self.stream.path_pattern
        named = sum(self.hour in now.named for now in there.values())
        if not scheduled(self.stream, self.hour):
            return
        if named < expected:
            found = "not there" if expected == 1 else f"{named} of {expected} are there"
            yield f"file {pattern.format_hour_path(self.hour)}: expected, {found}"
        periods = Periods.of(self.stream)
        if periods is not None:
            for start in periods.uncovered(there, self.hour):
                end = start + periods.length
                yield f"file {periods.name(start)}: expected, not there; of {start:%H:%M} to {end:%H:%M}"

    def _remedy(self, known: Mapping[str, FileRecord], there: Mapping[str, ListedFile]) -> None:
        """Forgets what is withheld only for files that are no longer what they were: a run will tell."""
        for node in list(self._withheld):
            withheld = [
                file for file in known.values() if file.status == "withheld" and file.hour == node.hour
            ]
            if node.stage == STAGE and withheld and all(_changed(f, there.get(f.path)) for f in withheld):
                self._withheld.discard(node)
        for file in known.values():
            if (
                file.status == "withheld"
                and self.hour in file.touched
                and not _changed(file, there.get(file.path))
            ):
                self._withheld.add(node_of("events", file.hour))


def _changed(file: FileRecord, now: ListedFile | None) -> str:
    """How a file differs from what is known of it, in words; none where it does not."""
    if now is None:
        return "gone; its rows stay" if file.source_id else "gone; the next run forgets it"
    if (file.size, file.modified) == (now.size, now.modified):
        return ""
    return (
        f"changed, {now.size} bytes of {now.modified:%Y-%m-%d %H:%M:%S} now, "
        f"{file.size} of {file.modified:%Y-%m-%d %H:%M:%S} when it was read"
    )
