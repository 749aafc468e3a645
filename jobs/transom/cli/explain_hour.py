"""Why an hour is as it is, in words."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter

from transom.app.freshness import freshness_of, snapshot_of
from transom.cli.changed_specification import changed_specification
from transom.cli.file_remarks import known_files, remarks_of_hour
from transom.cli.lake_argument import TRY_TRIGGER
from transom.core.intervals import UNKNOWN_HOUR, Interval, format_hours
from transom.core.partitions import READABLE, SOURCE_STAGE, PartitionKey, PartitionState
from transom.core.terminal import counted
from transom.engine.gate_text import format_check_result, format_root
from transom.features.ingest.file_records import FileRecord, ListedFile
from transom.features.ingest.landing import list_files
from transom.features.ingest.periods import Periods
from transom.features.ingest.specified import Specified, node_of, scheduled
from transom.ledger.freshness import EVENTS, Code, StaleReason
from transom.ledger.ledger import Ledger
from transom.ledger.waivers import entries_of, entry_for, format_waived, near_misses
from transom.spec.stream import Stream

REMEDY = "mend the data, or accept the value in the stream's file"
MAX_SHOWN = 5
NOT_THERE: Mapping[Code, str] = {
    "not_computed": "it has not been computed",
    "block_added": "the block has come since the hour was computed",
}
CHANGED: Mapping[Code, str] = {
    "unknown_inputs": "what it was made of cannot be told: rows of several specifications, or of a killed "
    "run",
    "completeness": "what decides whether it is complete has changed: a check, `expected_files`, or a waiver",
    "checks": "its checks, or what is accepted of them, have changed since they withheld it",
}
"""Reasons, in words."""


class HourExplanation:
    """What is said of one hour.

    Attributes:
        lines: in words, stage by stage.
        troubled: whether something of it is not fresh.
    """

    def __init__(self, stream: Stream, ledger: Ledger, hour: datetime) -> None:
        self.stream, self.ledger, self.hour = stream, ledger, hour
        self.snapshot = snapshot_of(stream, ledger)
        self.freshness = freshness_of(stream, self.snapshot)
        self.troubled = False
        self._recorded = dict(sorted(self.snapshot.within(Interval.of_hour(hour))))
        self._withheld: set[PartitionKey] = set()
        self._printed: set[str] = set()
        self._at_work: str | None = None
        self._remedy = REMEDY
        # Whether a run changes anything before a file comes.
        self._to_run = self._missing = False
        self._hours = {hour}
        runs = ledger.runs()
        self._finished = {run["run_id"]: run["finished_at"] for run in runs}
        # Its files lay under other names, which are gone; what lies in the landing folder is another matter.
        self._tried = bool(runs) and all(run["trigger"] == TRY_TRIGGER for run in runs)
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
            return f"{self._remedy}, then run"
        if self._missing and not self._to_run:
            return "a run changes nothing before the file is there; then run"
        return "to run it"

    def _stage(self, stage: str) -> Iterator[str]:
        if self.hour not in self.snapshot.hours(stage):
            self.troubled = self._to_run = True
            yield f"{stage}: {self._not_asked(stage)}"
            return
        partitions = self.freshness.partitions(stage, self.hour)
        # Tables that are as they are for one cause stand together, and the cause below them, once.
        for causes, tables in groupby(map(self._partition, partitions), itemgetter(1)):
            yield from (head for head, _ in tables)
            new = [line for line in causes if line not in self._printed]
            self._printed.update(causes)
            yield from (f"  {line}" for line in new)
            if len(new) < len(causes):
                yield "  and as above" if new else "  as above"
        for verdict in self.ledger.accepted(self.snapshot, stage):
            if verdict.node.hour == self.hour:
                yield f"  {format_waived(verdict)}"

    def _not_asked(self, stage: str) -> str:
        at_work = self._unfinished(stage)
        if at_work:
            return self._being_computed(at_work)
        if self.hour in self.snapshot.required_hours:
            return f"stale: ingest has been asked for it, and {stage} has not run since"
        own = (
            state.rows for of, state in self._recorded.items() if (of.stage, of.table) == (stage, "events")
        )
        events = sum(own)
        beside = f"; files of other hours have put {counted(events, 'event')} in it" if events else ""
        return f"nobody has asked for it, so it counts as empty{beside}"

    def _being_computed(self, run: str) -> str:
        self._at_work = run
        return f"not computed yet; run {run} is at work, or was killed"

    def _unfinished(self, stage: str) -> str | None:
        """A run that has published or begun some of the hour, of the stage or of one before it, and that has
        not ended: it will come to the rest, or was killed."""
        stages = self.stream.stages[: self.stream.stages.index(stage) + 1]
        for of, state in self._recorded.items():
            if of.stage in stages and state.requested and self._when(state) is None:
                return state.run_id
        return None

    def _partition(self, partition: PartitionKey) -> tuple[str, list[str]]:
        """What has become of a partition, and why."""
        of_table = "" if partition.series == EVENTS else f", {partition.table}"
        name = f"{partition.stage} {partition.block}{of_table}"
        state, reasons = self._recorded.get(partition), self.freshness.why_not(partition)
        if state is None:
            self.troubled = self._to_run = True
            at_work = self._unfinished(partition.stage)
            if at_work:
                return f"{name}: {self._being_computed(at_work)}", []
            why = NOT_THERE[reasons[0].code if reasons else "not_computed"]
            return f"{name}: stale: {why}", []
        causes = list(chain.from_iterable(self._reason(partition, state, reason) for reason in reasons))
        causes += self._incomplete(partition, state)
        stale = any(reason.code not in ("writing", "quarantined", "blocked") for reason in reasons)
        self.troubled |= bool(causes)
        self._to_run |= stale or state.status not in READABLE
        when = self._when(state)
        parts = [
            str(state.status),
            *(["incomplete"] if state.status == "published" and not state.complete else []),
            *(["stale"] if stale else []),
            counted(state.rows, "row"),
            f"by run {state.run_id}",
            *([f"{when:%Y-%m-%d %H:%M}"] if when else []),
        ]
        return f"{name}: {', '.join(parts)}", causes

    def _reason(self, partition: PartitionKey, state: PartitionState, reason: StaleReason) -> Iterator[str]:
        """A reason in words; what to run, and what else helps, is noted."""
        hours = [of.hour for of in reason.partitions]
        match reason.code:
            case "writing":
                self._at_work = state.run_id
                yield "a run has begun to write it and has not published it: it is at work, or was killed"
            case "damaged":
                if partition.stage == SOURCE_STAGE:
                    # Files are taken whole.
                    files = [file for file in self._known if file.source_id and self.hour in file.touched]
                    self._hours |= frozenset().union(*(file.touched for file in files)) - {UNKNOWN_HOUR}
                yield f"its rows are damaged; a run over the hour makes them again: {state.reason}"
            case "specification" | "dropped":
                yield changed_specification(self.stream, self.freshness, partition)
            case "version":
                versions = f"version {reason.recorded} then, {reason.expected} now"
                yield f"transom computes it otherwise since: {versions}"
            case "unknown_inputs" | "completeness" | "checks":
                yield CHANGED[reason.code]
            case "input_missing":
                yield f"the {reason.name} of {format_hours(hours)}, which it reads, have not been computed"
            case "input_changed":
                yield self._changed_input(reason, state)
            case "state_stale":
                by_table: dict[str, list[datetime]] = {}
                for of in filter(self.snapshot.__contains__, reason.partitions):
                    by_table.setdefault(of.table, []).append(of.hour)
                for table, of_table in by_table.items():
                    which = "" if of_table == [self.hour] else f" of {format_hours(of_table)}"
                    yield f"the {table}{which} that it is computed from are stale"
            case "upstream_stale":
                self._hours.update(hours)
                upstream = format_root(reason.partitions[0], self.snapshot)
                yield f"computed from what is stale in turn: {upstream}"
            case "quarantined":
                self._withheld.add(partition)
                yield f"withheld, what was published before stays: {state.reason}"
                yield from self._failed_checks(partition, "error")
            case "blocked":
                yield f"not computed: {state.reason}"

    def _changed_input(self, reason: StaleReason, state: PartitionState) -> str:
        table, mine = reason.name, self._when(state)
        written = {of.hour: self._when(self.snapshot[of]) for of in reason.partitions if of in self.snapshot}
        since = [hour for hour, when in written.items() if mine and when and when > mine]
        self._hours.update(since)
        if since:
            return f"the {table} of {format_hours(since)} have changed since it was computed from them"
        if not reason.partitions:
            return f"it was computed from the {table}, which it does not read now"
        hours = format_hours(of.hour for of in reason.partitions)
        return f"the {table} of {hours}, which it reads now, are not those that it was computed from"

    def _when(self, state: PartitionState) -> datetime | None:
        """When the run ended that a partition is of; a chunk of it has the run's name and a number."""
        run, _, _ = state.run_id.rpartition(" ")
        return self._finished.get(state.run_id) or self._finished.get(run)

    def _incomplete(self, partition: PartitionKey, state: PartitionState) -> Iterator[str]:
        """What is missing in a partition, or kept it from being computed."""
        if not state.complete and state.status not in ("quarantined", "blocked"):
            yield f"something is missing: {state.reason}"
            yield from self._failed_checks(partition, "incomplete")
        if state.status != "blocked" and (state.complete or state.status not in READABLE):
            return
        by_cause: dict[tuple[str, str, str], list[datetime]] = {}
        for of in self.freshness.troubles(partition):
            if of != partition:
                self._hours.add(of.hour)
                upstream = self.snapshot[of]
                status = "incomplete" if upstream.status in READABLE else str(upstream.status)
                self._withheld |= {of} if status == "quarantined" else set()
                key = f"{of.stage} {of.block}", status, upstream.reason or ""
                by_cause.setdefault(key, []).append(of.hour)
        for (name, status, cause), hours in list(by_cause.items())[:MAX_SHOWN]:
            yield f"because {name} {format_hours(hours)} is {status}{f': {cause}' if cause else ''}"
        if len(by_cause) > MAX_SHOWN:
            yield f"and for {len(by_cause) - MAX_SHOWN} further causes"

    def _failed_checks(self, partition: PartitionKey, severity: str) -> Iterator[str]:
        """The failed checks of a severity, and how to let them pass."""
        verdicts = self.ledger.checks(self.snapshot, partition.stage, {self.hour})
        for verdict in verdicts:
            if verdict.node.series != partition.series or verdict.success or verdict.severity != severity:
                continue
            entry, withheld = entry_for(verdict), severity == "error"
            if withheld:
                built_in = self.stream.built_in.get(verdict.check)
                if built_in and built_in.mended:
                    self._remedy, entry = built_in.mended, None
                yield from format_check_result(verdict).split("\n")
            yield from near_misses(verdict, entries_of(self.stream.waivers), verdicts if withheld else ())
            if entry:
                when = "to accept it" if withheld else "if it never comes"
                yield f"{when}, add this to waivers in the stream file: {entry}"

    @cached_property
    def _known(self) -> list[FileRecord]:
        return known_files(self.ledger.root)

    def remarks(self) -> list[str]:
        """Return what a person should know of the hour's files; nothing of it makes the hour less fresh."""
        return remarks_of_hour(
            self.stream, sorted(self._known, key=lambda file: file.path), self.snapshot, self.hour
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
        withheld = [file for file in known.values() if file.status == "quarantined"]
        as_read = [file for file in withheld if not _changed(file, there.get(file.path))]
        # A run decides anew about files that have changed.
        decided_anew = {file.hour for file in withheld} - {file.hour for file in as_read}
        self._withheld = {
            of for of in self._withheld if of.stage != SOURCE_STAGE or of.hour not in decided_anew
        }
        self._withheld |= {node_of("events", file.hour) for file in as_read if self.hour in file.touched}
        shape = Specified(self.stream).shape
        lines = list(self._expected(there))
        expected, self._missing = len(lines), bool(lines)
        for path in sorted(known.keys() | there.keys()):
            file, now = known.get(path), there.get(path)
            if file is None:
                if now is not None and self.hour in now.named:
                    lines.append(f"file {path}: new, {now.size} bytes; no run has seen it")
                elif now is not None and now.start is None:
                    lines.append(f"file {path}: new, no run has seen it; its hours are known when it is read")
            elif self.hour in file.touched:
                # Taken, or read again, with all its hours.
                if file.status == "waiting" or (now and file.spec_hash != shape(file.hour)):
                    self._hours |= file.touched - {UNKNOWN_HOUR}
                if file.status == "quarantined":
                    self._hours |= {file.hour} - {UNKNOWN_HOUR}
                changed = _changed(file, now)
                if file.status in ("waiting", "quarantined", "conflict"):
                    lines.append(
                        f"file {path}: {file.status}: {file.status_reason}{changed and f'; {changed}'}"
                    )
                elif changed and (now is not None or file.status != "missing"):
                    lines.append(f"file {path}: {changed}")
        self._to_run |= len(lines) > expected
        return lines

    def _expected(self, there: Mapping[str, ListedFile]) -> Iterator[str]:
        """The files that the hour ought to have, and has not."""
        expected, pattern = self.stream.source.expected_files or 0, self.stream.path_pattern
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
