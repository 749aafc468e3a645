"""Explain the state of an hour as text."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache, cached_property
from itertools import chain, groupby
from operator import attrgetter, itemgetter

from transom.app.freshness import freshness_of, snapshot_of
from transom.core.intervals import UNKNOWN_HOUR, Interval, format_hours
from transom.core.partitions import READABLE, SOURCE_STAGE, CheckResult, PartitionKey, PartitionState
from transom.core.terminal import counted
from transom.engine.gate_text import format_check_result, format_root
from transom.features.ingest.expected_inputs import ExpectedInputs, partition_of, scheduled
from transom.features.ingest.file_records import FileRecord, ListedFile
from transom.features.ingest.hour_states import Periods
from transom.features.ingest.landing import list_files
from transom.ledger.freshness import EVENTS, Freshness
from transom.ledger.ledger import Ledger
from transom.ledger.stale_reason import Code, StaleReason
from transom.ledger.waivers import entries_of, entry_for, format_acceptance, format_waived, near_misses
from transom.spec.stream import Stream
from transom.views.changed_specification import changed_specification
from transom.views.file_remarks import known_files, remarks_of_hour

REMEDY = "fix the data, or accept the value in the stream file"
TRY_TRIGGER = "try"
"""Trigger of the runs of `transom try` in the ledger."""
MAX_SHOWN = 5
"""Maximum number of causes that are listed one by one."""
WORDS: Mapping[Code, str] = {
    "not_computed": "it has not been computed",
    "block_added": "the block was added after the hour was computed",
    "unknown_inputs": "its inputs are unknown: rows of several specifications, or of a killed run",
    "completeness": "what decides whether it is complete has changed: a check, `expected_files`, or a waiver",
    "checks": "its checks, or their waivers, have changed since it was quarantined",
}
"""Texts of the reasons for stale partitions."""


class HourExplanation:
    """The explanation of one hour.

    Args:
        stream: the stream.
        ledger: its ledger.
        hour: the hour.
        freshness: the freshness of the partitions. Default: that of now.

    Attributes:
        of_stages: the state of each stage and its reasons.
        lines: the same, of all stages.
        troubled: whether anything of the hour is not fresh.
    """

    def __init__(
        self, stream: Stream, ledger: Ledger, hour: datetime, freshness: Freshness | None = None
    ) -> None:
        self.stream, self.ledger, self.hour = stream, ledger, hour
        self.freshness = freshness or freshness_of(stream, snapshot_of(stream, ledger))
        self.snapshot = self.freshness.snapshot
        self.troubled = False
        self._recorded = dict(sorted(self.snapshot.within(Interval.of_hour(hour))))
        self._quarantined: set[PartitionKey] = set()
        self._printed: set[str] = set()
        self._active_run: str | None = None
        self._remedy, self._waivers = REMEDY, entries_of(stream.waivers)
        # Whether a run would change something, and whether a file is missing.
        self._to_run = self._missing = False
        self._hours = {hour}
        self._end_of_run = cache(ledger.end_of_run)
        # `transom try` linked its files under names that no longer exist; the landing folder is unrelated.
        self._tried = ledger.triggers() == {TRY_TRIGGER}
        self.of_stages = {stage: list(self._stage(stage)) for stage in stream.stages}
        self.lines = list(chain.from_iterable(self.of_stages.values()))
        if self._tried:
            self.lines.append("files: not looked at, as `transom try` has made this lake")

    @property
    def run_interval(self) -> tuple[datetime, datetime]:
        """The first and the last hour to run."""
        return min(self._hours), max(self._hours)

    @property
    def advice(self) -> str:
        """The remedy; after a call of `files` it also depends on the landing folder."""
        if self._active_run:
            return f"nothing is to be done while run {self._active_run} is active; if it was killed, run"
        if self._quarantined:
            acceptance = self._acceptance() if self._waivers else None
            return f"{acceptance}; run" if acceptance else f"{self._remedy}, then run"
        if self._missing and not self._to_run:
            return "a run changes nothing before the file is there; then run"
        return "to run it"

    def _stage(self, stage: str) -> Iterator[str]:
        if self.hour not in self.snapshot.hours(stage):
            self.troubled = self._to_run = True
            yield f"{stage}: {self._not_requested(stage)}"
            return
        partitions = self.freshness.partitions(stage, self.hour)
        # Consecutive tables with the same causes are listed together, with the causes below them.
        for causes, tables in groupby(map(self._partition, partitions), itemgetter(1)):
            yield from map(itemgetter(0), tables)
            new = [line for line in causes if line not in self._printed]
            self._printed.update(causes)
            yield from (f"  {line}" for line in new)
            if len(new) < len(causes):
                yield "  and as above" if new else "  as above"
        for result in self.ledger.accepted(self.snapshot, stage):
            if result.partition.hour == self.hour:
                yield f"  {format_waived(result)}"

    def _not_requested(self, stage: str) -> str:
        if unfinished := self._unfinished(stage):
            return unfinished
        if self.hour in self.snapshot.required_hours:
            return f"stale: it was requested from ingest, and {stage} has not run since"
        tables = self._recorded.items()
        events = sum(state.rows for key, state in tables if (key.stage, key.table) == (stage, "events"))
        more = f"; files of other hours have put {counted(events, 'event')} in it" if events else ""
        return f"not requested, so it counts as empty{more}"

    def _unfinished(self, stage: str) -> str | None:
        """Return text about an unfinished run of the stage or an earlier stage; None if there is none.

        The run has published or begun a part of the hour. It will compute the rest, or was killed.
        """
        stages = self.stream.stages[: self.stream.stages.index(stage) + 1]
        for key, state in self._recorded.items():
            if key.stage in stages and state.requested and self._end(state) is None:
                self._active_run = state.run_id
                return f"not computed yet; run {state.run_id} is active, or was killed"
        return None

    def _partition(self, partition: PartitionKey) -> tuple[str, list[str]]:
        """Return the state of a partition, and its causes."""
        of_table = "" if partition.series == EVENTS else f", {partition.table}"
        name = f"{partition.stage} {partition.block}{of_table}"
        state, reasons = self._recorded.get(partition), self.freshness.why_not(partition)
        if state is None:
            self.troubled = self._to_run = True
            reason = WORDS[reasons[0].code if reasons else "not_computed"]
            return f"{name}: {self._unfinished(partition.stage) or f'stale: {reason}'}", []
        causes = list(chain.from_iterable(self._reason(partition, state, reason) for reason in reasons))
        causes += self._incomplete(partition, state)
        stale = any(reason.code not in ("writing", "quarantined", "blocked") for reason in reasons)
        self.troubled |= bool(causes)
        self._to_run |= stale or state.status not in READABLE
        end = self._end(state)
        words = [
            str(state.status), "incomplete" if state.status == "published" and not state.complete else "",
            "stale" if stale else "", counted(state.rows, "row"), f"by run {state.run_id}",
            f"{end:%Y-%m-%d %H:%M}" if end else "",
        ]  # fmt: skip
        return f"{name}: {', '.join(filter(None, words))}", causes

    def _reason(self, partition: PartitionKey, state: PartitionState, reason: StaleReason) -> Iterator[str]:
        """Yield the text of a reason, and record the hours to run and the remedy."""
        hours = [key.hour for key in reason.partitions]
        match reason.code:
            case "writing":
                self._active_run = state.run_id
                yield "a run has begun to write it and has not published it: it is active, or was killed"
            case "damaged":
                if partition.stage == SOURCE_STAGE:
                    # A run ingests a file as a whole.
                    files = [file for file in self._known if file.source_id and self.hour in file.touched]
                    self._hours |= frozenset().union(*(file.touched for file in files)) - {UNKNOWN_HOUR}
                yield f"its rows are damaged; a run over the hour computes them again: {state.reason}"
            case "specification" | "dropped":
                yield changed_specification(self.stream, self.freshness, partition)
            case "version":
                versions = f"version {reason.recorded} then, {reason.expected} now"
                yield f"a later version of transom computes it differently: {versions}"
            case "unknown_inputs" | "completeness" | "checks":
                yield WORDS[reason.code]
            case "input_missing":
                yield f"the {reason.name} of {format_hours(hours)}, which it reads, have not been computed"
            case "input_changed":
                yield self._changed_input(reason, state)
            case "state_stale":
                by_table: dict[str, list[datetime]] = {}
                for key in filter(self.snapshot.__contains__, reason.partitions):
                    by_table.setdefault(key.table, []).append(key.hour)
                for table, of_table in by_table.items():
                    which = "" if of_table == [self.hour] else f" of {format_hours(of_table)}"
                    yield f"the {table}{which} that it is computed from are stale"
            case "upstream_stale":
                self._hours.update(hours)
                upstream = format_root(reason.partitions[0], self.snapshot)
                yield f"computed from what is stale in turn: {upstream}"
            case "quarantined":
                self._quarantined.add(partition)
                yield f"quarantined; the rows published before stay: {state.reason}"
                yield from self._failed_checks(partition, "error")
            case "blocked":
                yield f"not computed: {state.reason}"

    def _changed_input(self, reason: StaleReason, state: PartitionState) -> str:
        table, computed = reason.name, self._end(state)
        written = {
            key.hour: self._end(self.snapshot[key]) for key in reason.partitions if key in self.snapshot
        }
        since = [hour for hour, end in written.items() if computed and end and end > computed]
        self._hours.update(since)
        if since:
            return f"the {table} of {format_hours(since)} have changed since it was computed from them"
        if not reason.partitions:
            return f"it was computed from the {table}, which it does not read now"
        hours = format_hours(key.hour for key in reason.partitions)
        return f"the {table} of {hours}, which it reads now, are not those that it was computed from"

    def _end(self, state: PartitionState) -> datetime | None:
        """Return when a partition's run ended; None if it has not."""
        return self._end_of_run(state.run_id)

    def _incomplete(self, partition: PartitionKey, state: PartitionState) -> Iterator[str]:
        """Yield what is missing in a partition, or why it was not computed."""
        if not state.complete and state.status not in ("quarantined", "blocked"):
            yield f"something is missing: {state.reason}"
            yield from self._failed_checks(partition, "incomplete")
        if state.status != "blocked" and (state.complete or state.status not in READABLE):
            return
        by_cause: dict[tuple[str, str, str], list[datetime]] = {}
        for key in self.freshness.troubles(partition):
            if key != partition:
                self._hours.add(key.hour)
                upstream = self.snapshot[key]
                status = "incomplete" if upstream.status in READABLE else str(upstream.status)
                self._quarantined |= {key} if status == "quarantined" else set()
                group = f"{key.stage} {key.block}", status, upstream.reason or ""
                by_cause.setdefault(group, []).append(key.hour)
        for (name, status, cause), hours in list(by_cause.items())[:MAX_SHOWN]:
            yield f"because {name} {format_hours(hours)} is {status}{f': {cause}' if cause else ''}"
        if len(by_cause) > MAX_SHOWN:
            yield f"and for {len(by_cause) - MAX_SHOWN} further causes"

    def _acceptance(self) -> str | None:
        """Return that the stream file accepts every failed check of what is quarantined; else None."""
        failed: list[CheckResult] = []
        for stage, keys in groupby(sorted(self._quarantined), attrgetter("stage")):
            blocks = {(key.block, key.hour) for key in keys}
            results = self.ledger.checks(self.snapshot, stage, {hour for _, hour in blocks})
            by_block = {
                block: [
                    result
                    for result in results
                    if (result.partition.block, result.partition.hour) == block
                    and (result.severity, result.success) == ("error", False)
                ]
                for block in blocks
            }
            if not all(by_block.values()):
                return None
            failed += chain.from_iterable(by_block.values())
        return format_acceptance(failed, self._waivers)

    def _failed_checks(self, partition: PartitionKey, severity: str) -> Iterator[str]:
        """Yield the failed checks of a severity, and the waivers that would accept them."""
        is_error = severity == "error"
        results = self.ledger.checks(self.snapshot, partition.stage, {self.hour})
        for result in results:
            if result.partition.series != partition.series or result.success or result.severity != severity:
                continue
            entry = entry_for(result)
            if is_error:
                built_in = self.stream.built_in.get(result.check)
                if built_in and built_in.remedy:
                    self._remedy, entry = built_in.remedy, None
                yield from format_check_result(result).split("\n")
            yield from near_misses(result, self._waivers, results if is_error else ())
            if acceptance := format_acceptance([result], self._waivers):
                yield acceptance
            elif entry:
                when = "to accept it" if is_error else "if it never arrives"
                yield f"{when}, add this to waivers in the stream file: {entry}"

    @cached_property
    def _known(self) -> list[FileRecord]:
        return known_files(self.ledger.root)

    def remarks(self) -> list[str]:
        """Return remarks on the hour's files; they do not affect its freshness."""
        files = sorted(self._known, key=lambda file: file.path)
        return remarks_of_hour(self.stream, files, self.snapshot, self.hour)

    def files(self) -> list[str]:
        """Return the changes of this hour's files in the landing folder since they were read.

        Raises:
            LandingError: the folder cannot be listed.
        """
        if self._tried:
            return []
        known = {file.path: file for file in self._known}
        landed = list_files(self.stream.source.pattern)
        # A run checks changed files again, and computes their hours again.
        quarantined = [file for file in self._known if file.status == "quarantined"]
        unchanged = [file for file in quarantined if not _changed(file, landed.get(file.path))]
        changed_hours = {file.hour for file in quarantined} - {file.hour for file in unchanged}
        self._quarantined = {
            key for key in self._quarantined if key.stage != SOURCE_STAGE or key.hour not in changed_hours
        }.union(partition_of("events", file.hour) for file in unchanged if self.hour in file.touched)
        spec_hash = ExpectedInputs(self.stream).spec_hash
        lines = list(self._missing_files(landed))
        missing, self._missing = len(lines), bool(lines)
        for path in sorted(known.keys() | landed.keys()):
            file, now = known.get(path), landed.get(path)
            if file is None:
                if now is not None and self.hour in now.named:
                    lines.append(f"file {path}: new, {now.size} bytes; no run has seen it")
                elif now is not None and now.start is None:
                    lines.append(f"file {path}: new, no run has seen it; its hours are known when it is read")
            elif self.hour in file.touched:
                # A run ingests it, or reads it again, with all its hours.
                if file.status == "waiting" or (now and file.spec_hash != spec_hash(file.hour)):
                    self._hours |= file.touched - {UNKNOWN_HOUR}
                if file.status == "quarantined":
                    self._hours |= {file.hour} - {UNKNOWN_HOUR}
                changed = _changed(file, now)
                if file.status in ("waiting", "quarantined", "conflict"):
                    change = changed and f"; {changed}"
                    lines.append(f"file {path}: {file.status}: {file.status_reason}{change}")
                elif changed and (now is not None or file.status != "missing"):
                    lines.append(f"file {path}: {changed}")
        self._to_run |= len(lines) > missing
        return lines

    def _missing_files(self, landed: Mapping[str, ListedFile]) -> Iterator[str]:
        """Yield the expected files of the hour that are missing."""
        if not scheduled(self.stream, self.hour):
            return
        expected, pattern = self.stream.source.expected_files or 0, self.stream.source.pattern
        named = sum(self.hour in file.named for file in landed.values())
        if named < expected:
            count = "not there" if expected == 1 else f"{named} of {expected} are there"
            yield f"file {pattern.format_hour_path(self.hour)}: expected, {count}"
        periods = Periods.of(self.stream)
        if periods is not None:
            for start in periods.uncovered(landed, self.hour):
                end = start + periods.length
                yield f"file {periods.name(start)}: expected, not there; of {start:%H:%M} to {end:%H:%M}"


def _changed(file: FileRecord, now: ListedFile | None) -> str:
    """Return text on how a file differs from its record; empty if it does not."""
    if now is None:
        return "gone; its rows stay" if file.source_id else "gone; the next run forgets it"
    if (file.size, file.modified) == (now.size, now.modified):
        return ""
    return (
        f"changed, {now.size} bytes of {now.modified:%Y-%m-%d %H:%M:%S} now, "
        f"{file.size} of {file.modified:%Y-%m-%d %H:%M:%S} when it was read"
    )
