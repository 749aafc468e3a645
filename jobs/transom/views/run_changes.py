"""The changes of a run: late files, hours that it wrote beyond its request with their cause, findings."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from transom.app.definitions import definitions_of
from transom.charts.section import MAX_ROWS
from transom.core.hour_sets import HourSet
from transom.core.intervals import Interval, format_hours
from transom.core.partitions import SOURCE_STAGE
from transom.core.terminal import counted
from transom.engine.selection import Selection
from transom.features.registry import INGEST_OUTLETS, OUTLETS
from transom.ledger.dependents import dependents_of
from transom.ledger.freshness import Freshness
from transom.ledger.run_details import FileRead, Written
from transom.ledger.run_records import RunRecord, format_file
from transom.views.file_remarks import content_remarks
from transom.views.runs import RunGroup

MAX_CAUSES = 20
"""The maximum number of changed hours whose dependents are looked up."""
UNKNOWN = "an input, a check or the stream file had changed since they were computed"
"""The cause of hours that no file of the run explains."""


MAX_LISTED = 8
"""The maximum number of tables, and of late files, in a sentence."""
CHANGED, SAME = "changed", "the same rows as before"
"""The outcomes of published hours."""


@dataclass(frozen=True)
class WrittenBeyond:
    """Hours of a table that a run wrote outside its request, with one outcome and one cause.

    Attributes:
        stage: the stage.
        block: the block.
        table: the table.
        outcome: `CHANGED` or `SAME`, also with ", incomplete", or quarantined, blocked or deleted.
        cause: the root cause.
        hours: the hours.
    """

    stage: str
    block: str
    table: str
    outcome: str
    cause: str
    hours: tuple[Interval, ...]

    @property
    def is_result(self) -> bool:
        """Whether people read the table; others are state of later hours."""
        return self.table in (INGEST_OUTLETS if self.stage == SOURCE_STAGE else OUTLETS.get(self.stage, ()))

    @property
    def name(self) -> str:
        """The table, with its block."""
        return self.table if self.stage == SOURCE_STAGE else f"{self.table} of {self.block}"


@dataclass(frozen=True)
class FileOfRun:
    """A content of a file that a run read, with remarks: late, new, replaced since, empty, or a duplicate."""

    file: FileRead
    remark: str
    is_late: bool


@dataclass(frozen=True)
class ChangedFinding:
    """A finding that a run made new, updated or withdrew."""

    finding_id: str
    change: str
    severity: str
    title: str


@dataclass(frozen=True)
class RunChanges:
    """The changes of a run.

    Attributes:
        run: the run.
        files: the contents of files that it read, the late files first; at most `MAX_ROWS`. A run whose stage
            is tried again may read two contents of a file.
        more_files: the number of the others.
        paths: the number of files.
        late: the number of late files.
        beyond: what it wrote outside its request.
        findings: the findings that it changed, the withdrawn ones first.
        counts: the number of all of them, by change.
    """

    run: RunGroup
    files: tuple[FileOfRun, ...]
    more_files: int
    paths: int
    late: int
    beyond: tuple[WrittenBeyond, ...]
    findings: tuple[ChangedFinding, ...]
    counts: Mapping[str, int]

    @property
    def summary(self) -> list[str]:
        """Sentences on the run as a whole."""
        if not self.run.known:
            why = "it is older than these records, or than a year"
            return [f"The lake does not have what this run wrote: {why}."]
        names = [name for name in ("new", "updated", "withdrawn") if self.counts.get(name)]
        changes = ", ".join(f"{self.counts[name]} {name}" for name in names)
        contents = len(self.files) + self.more_files
        of = f"{counted(contents, 'content')} of " if contents > self.paths else ""
        return [
            f"{of}{counted(self.paths, 'file')} read, of which {self.late} late.",
            *self._arrivals(),
            *(self._effects() or ["Nothing was written beyond the request."]),
            f"Findings: {changes or 'none changed'}.",
        ]

    def _arrivals(self) -> list[str]:
        """Return a sentence for each late file, and each new content of a file."""
        files = [of for of in self.files if of.is_late or of.file.replaced]
        sentences = [
            f"{'Late' if of.is_late else 'New content'}, of {format_hours([of.file.hour])}: "
            f"{format_file(of.file)}."
            for of in files[:MAX_LISTED]
        ]
        more = len(files) - MAX_LISTED
        return [*sentences, *([f"And {more} more such files."] if more > 0 else [])]

    def _effects(self) -> list[str]:
        """Return a sentence for each outcome of results beyond the request; `SAME` only of whole tables."""
        outcomes: dict[str, dict[str, int]] = {}
        for of in self.beyond:
            if of.is_result:
                tables = outcomes.setdefault(of.outcome, {})
                tables[of.name] = tables.get(of.name, 0) + sum(map(len, of.hours))
        changed = {name for outcome, tables in outcomes.items() if outcome != SAME for name in tables}
        if same := {name: count for name, count in outcomes.pop(SAME, {}).items() if name not in changed}:
            outcomes[SAME] = same
        sentences = []
        for outcome, tables in outcomes.items():
            listed = [f"{name} ({counted(count, 'hour')})" for name, count in tables.items()]
            more = len(listed) - MAX_LISTED
            texts = listed[:MAX_LISTED] + ([f"and {more} more tables"] if more > 0 else [])
            sentences.append(f"Written beyond the request, {outcome}: {', '.join(texts)}.")
        return sentences

    @property
    def causes(self) -> dict[str, list[WrittenBeyond]]:
        """The hours written outside the request, by their cause; at most `MAX_ROWS` rows."""
        causes: dict[str, list[WrittenBeyond]] = {}
        for of in self.beyond[:MAX_ROWS]:
            causes.setdefault(of.cause, []).append(of)
        return causes


def run_changes(selection: Selection, run: RunGroup, freshness: Freshness) -> RunChanges:
    """Return what a run changed.

    Args:
        selection: the state of the lake.
        run: the run, with its details.
        freshness: which hours are computed from which ones, by the stream file of now.
    """
    late = {of.path for one in run.stages for of in one.late_files}
    files = _contents(selection, run, late)
    causes = _Causes(selection, run, freshness, late)
    beyond = _beyond(run.stages, causes)
    counts: dict[str, int] = {}
    for one in run.stages:
        for change, count in (one.finding_counts or {}).items():
            counts[change] = counts.get(change, 0) + count
    findings = [
        ChangedFinding(of["finding_id"], of["change"], of["severity"], of["title"])
        for one in run.stages
        for of in one.findings
    ]
    order = ("withdrawn", "updated", "new")
    findings.sort(key=lambda of: (order.index(of.change), of.title))
    return RunChanges(
        run, tuple(files[:MAX_ROWS]), max(0, len(files) - MAX_ROWS), len({of.file.path for of in files}),
        len(late), tuple(beyond), tuple(findings), counts,
    )  # fmt: skip


def _contents(selection: Selection, run: RunGroup, late: Collection[str]) -> list[FileOfRun]:
    """Return the contents of files that a run read, those of late and of replaced files first."""
    reads: dict[str, list[FileRead]] = {}
    for one in run.stages:
        for of in one.files or ():
            contents = reads.setdefault(of.path, [])
            if of.replaced or not contents:
                contents.append(of)
            else:
                # The same content, read again: by now it may have another status.
                contents[-1] = replace(of, replaced=contents[-1].replaced)

    def order(path: str) -> tuple[bool, bool, datetime, str]:
        last = reads[path][-1]
        return path not in late, not last.replaced, last.hour, path

    ordered = [of for path in sorted(reads, key=order) for of in reads[path]]
    remarks = content_remarks(selection, ordered[:MAX_ROWS])
    return [
        FileOfRun(of, _remark(of, late, of is not reads[of.path][-1], remarks.get(of)), of.path in late)
        for of in ordered
    ]


def _remark(file: FileRead, late: Collection[str], is_replaced: bool, content: str | None) -> str:
    words = [
        *(["late"] if file.path in late else []),
        *(["new content"] if file.replaced else []),
        *(["replaced by a new content"] if is_replaced else []),
        *([content] if content else []),
    ]
    return ", ".join(words) or "in time"


def _beyond(records: Iterable[RunRecord], causes: "_Causes") -> list[WrittenBeyond]:
    """Return what a run wrote outside its request, the results of a stage first."""
    written: dict[tuple[str, str, str, str, str], list[Interval]] = {}
    for record in records:
        for of in record.outside():
            hours = Interval(of.start, of.end)
            names = record.stage, of.block, of.table, _outcome(of), causes.of(record.stage, hours)
            written.setdefault(names, []).append(hours)
    rows = [WrittenBeyond(*names, tuple(hours)) for names, hours in written.items()]
    stages = [*dict.fromkeys(of.stage for of in rows)]
    return sorted(rows, key=lambda of: (stages.index(of.stage), not of.is_result))


def _outcome(of: Written) -> str:
    if of.status not in ("published", "incomplete"):
        return of.status
    return f"{CHANGED if of.changed else SAME}{', incomplete' if of.status == 'incomplete' else ''}"


class _Causes:
    """The root causes of the hours that a run wrote beyond its request.

    Args:
        selection: the state of the lake.
        run: the run.
        freshness: which hours are computed from which ones.
        late: the paths of its late files.
    """

    def __init__(
        self, selection: Selection, run: RunGroup, freshness: Freshness, late: Iterable[str]
    ) -> None:
        self._late = set(late)
        self._files = [of for one in run.stages for of in one.files or ()]
        source = [one for one in run.stages if one.stage == SOURCE_STAGE]
        outside = {hour for one in source for of in one.outside() if of.changed for hour in _hours(of)}
        inside = {hour for one in source for of in one.written or () if of.changed for hour in _hours(of)}
        snapshot = freshness.snapshot
        tables = [table for table in snapshot.names if table[0] == SOURCE_STAGE]
        definitions = definitions_of(selection.stream).values()
        # An hour outside is the likelier cause: those inside are new.
        changed = [*sorted(outside), *sorted(inside - outside)][:MAX_CAUSES]
        self._outside = outside
        self._dependents: dict[datetime, Mapping[str, HourSet]] = {
            hour: dependents_of(
                definitions, snapshot.required_hours.numbers, freshness.spans, tables, SOURCE_STAGE, hour
            )
            for hour in changed
        }

    def of(self, stage: str, hours: Interval) -> str:
        """Return the cause of some hours of a stage."""
        if stage == SOURCE_STAGE:
            return self._of_files([*hours.hours()]) or UNKNOWN
        by = [
            changed
            for changed, dependents in self._dependents.items()
            if changed in hours or any(hour in hours for hour in dependents.get(stage, ()))
        ]
        by = [hour for hour in by if hour in self._outside] or by
        if not by:
            return UNKNOWN
        files = self._of_files(by)
        return f"the events of {format_hours(by)} changed{f': {files}' if files else ''}"

    def _of_files(self, hours: Sequence[datetime]) -> str:
        texts = [f"{of.path} {_what(of, self._late)}" for of in self._files if any(map(of.touches, hours))]
        more = f" and {len(texts) - 3} more files" if len(texts) > 3 else ""
        return f"{', '.join(texts[:3])}{more}"


def _what(file: FileRead, late: Collection[str]) -> str:
    return "came late" if file.path in late else "has a new content" if file.replaced else "was read"


def _hours(of: Written) -> list[datetime]:
    return [*Interval(of.start, of.end).hours()]
