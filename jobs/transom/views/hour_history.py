"""The history of an hour: the runs that wrote or checked it, their files, and why it was quarantined."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter

from transom.core.intervals import Interval
from transom.core.partitions import SOURCE_STAGE, CheckResult, PartitionKey
from transom.engine.reader import sql_name
from transom.engine.selection import Row, Selection
from transom.ledger.run_details import FileRead
from transom.ledger.run_records import RunRecord, format_file, name_of
from transom.ledger.waivers import format_observation
from transom.storage.tables import instant, literal
from transom.views.file_remarks import content_remarks
from transom.views.runs import RunGroup, may_have_written, read_runs

SUFFIX = 12
"""The number of characters of the unique end of a run id; the number of a chunk is shorter."""
UNPUBLISHED = ("quarantined", "blocked")
"""The outcomes that publish no rows."""
COLUMNS = (
    "stage", "block", "table", "hour", "check", "column", "severity", "observed", "expected", "success",
    "file", "accepted", "run_id",
)  # fmt: skip
"""The columns of `checks` that are read."""
Checks = dict[tuple[str, str], list[CheckResult]]
"""The results of the checks of an hour by stage and id of the run, without the number of a chunk."""


@dataclass(frozen=True)
class StageEvent:
    """The work of a run on an hour in one stage.

    Attributes:
        stage: the stage.
        time: when the stage ended; None if it has not.
        outcome: what became of the hour, with the cause.
        failed: the failed checks, each with file, observed and expected value.
        files: the files that were read for the hour, each with its lines and a remark.
        unpublished: whether the hour was not published.
    """

    stage: str
    time: datetime | None
    outcome: str
    failed: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    unpublished: bool = False


@dataclass(frozen=True)
class HourEvent:
    """A run that wrote or checked an hour.

    Attributes:
        run: the run; None if `runs` does not have it: it is active, or was killed.
        name: its name.
        stages: what it did in each stage, in the order in which they ended.
    """

    run: RunGroup | None
    name: str
    stages: tuple[StageEvent, ...]


@dataclass(frozen=True)
class HourHistory:
    """The history of an hour.

    Attributes:
        hour: the hour.
        events: its runs, the oldest first.
        summary: why it was quarantined or written again, and what solved it, a sentence each.
    """

    hour: datetime
    events: tuple[HourEvent, ...]
    summary: tuple[str, ...]


def hour_history(selection: Selection, hour: datetime) -> HourHistory:
    """Return the history of an hour; rows of other hours are skipped by the bounds of data files.

    Args:
        selection: the state of the lake.
        hour: the hour.
    """
    checks = _checks(selection, hour)
    records = read_runs(selection, may_have_written(Interval.of_hour(hour)), ["written", "files"])
    records = [of for of in records if of.wrote(hour)]
    unknown = checks.keys() - {(of.stage, of.run_id) for of in records}
    records += _older(selection, unknown)
    unknown -= {(of.stage, of.run_id) for of in records}
    files = (file for of in records for file in of.files or () if file.touches(hour))
    contents = content_remarks(selection, files)
    past = {stage: _StageHistory(hour, contents) for stage in selection.stream.stages}
    events = []
    # In order of time, also if the stages of a run end before and after another run.
    records.sort(key=attrgetter("finished_at", "run_id"))
    for name, of_run in groupby(records, attrgetter("name")):
        group = RunGroup(name, tuple(of_run))
        # A stage that the stream no longer has is in the records, too.
        stages = [
            past.setdefault(one.stage, _StageHistory(hour, contents)).add(
                one, checks.get((one.stage, one.run_id), [])
            )
            for one in group.stages
        ]
        events.append(HourEvent(group, name, tuple(stages)))
    for stage, run in sorted(unknown):
        outcome = "checked; the run is active, or was killed"
        event = StageEvent(stage, None, outcome, tuple(_failures(checks[stage, run])))
        events.append(HourEvent(None, name_of(run, stage), (event,)))
    return HourHistory(hour, tuple(events), tuple(past[SOURCE_STAGE].sentences))


def _checks(selection: Selection, hour: datetime) -> Checks:
    names = ", ".join(map(sql_name, COLUMNS))
    found: Checks = {}
    for row in selection.each("checks", f"SELECT {names} FROM t WHERE hour = {instant(hour)}"):
        run, _, number = row["run_id"].rpartition(" ")
        is_chunk = number.isdigit() and len(number) < SUFFIX
        found.setdefault((row["stage"], run if is_chunk else row["run_id"]), []).append(_result(row))
    return found


def _result(row: Row) -> CheckResult:
    key = PartitionKey(row["stage"], row["block"], row["table"], row["hour"])
    names = CheckResult.__dataclass_fields__.keys() & row.keys()
    return CheckResult(key, **{name: row[name] for name in names})


def _older(selection: Selection, unknown: Iterable[tuple[str, str]]) -> list[RunRecord]:
    """Return the runs that have checked the hour, and whose records do not have what they wrote."""
    ids = sorted({literal(run) for _, run in unknown})
    return read_runs(selection, f"run_id IN ({', '.join(ids)})", ()) if ids else []


def _failures(results: Iterable[CheckResult]) -> Iterator[str]:
    """Yield the failed checks, the worst first."""
    order = ("error", "incomplete", "warning")
    for of in sorted(results, key=lambda of: (order.index(of.severity), of.check, of.file or "")):
        if not of.success or of.accepted:
            accepted = f"; accepted by {of.accepted}" if of.accepted else ""
            block = f" ({of.partition.block})" if of.partition.stage != SOURCE_STAGE else ""
            yield f"{of.severity}: {_text(of)}{block}{accepted}"


def _text(of: CheckResult) -> str:
    where = f" of {of.file}" if of.file else f" of {of.column}" if of.column else ""
    return f"{of.check}{where}: {format_observation(of)}"


class _StageHistory:
    """The history of an hour in one stage, run by run.

    Args:
        hour: the hour.
        contents: the remarks on the contents of files.

    Attributes:
        sentences: why the hour was quarantined or written again, and what solved it.
    """

    def __init__(self, hour: datetime, contents: Mapping[FileRead, str]) -> None:
        self.sentences: list[str] = []
        self._hour, self._contents = hour, contents
        self._published, self._unpublished = False, False
        self._missing: str | None = None

    def add(self, record: RunRecord, results: list[CheckResult]) -> StageEvent:
        """Return what the next run did with the hour.

        Args:
            record: the run; of an older version it does not have what was written.
            results: its checks of the hour.
        """
        failed = [of for of in results if not of.success and of.accepted is None]
        causes = {of.severity: _text(of) for of in reversed(failed)}
        written = record.wrote(self._hour)
        statuses = {of.status for of in written}
        unpublished = bool(statuses & {*UNPUBLISHED}) if written else "error" in causes
        by = f"by run {record.name} at {record.finished_at:%Y-%m-%d %H:%M:%S} UTC"
        if unpublished:
            outcome = "quarantined" if "error" in causes else "not computed, as an input is not published"
            if not self._unpublished:
                self.sentences.append(f"Quarantined {by}: {causes.get('error', 'a check failed')}.")
        else:
            missing = "incomplete" in (statuses if written else causes)
            same = bool(written) and not any(of.changed for of in written)
            outcome = self._published_again(record, results, by, same)
            if missing:
                outcome += ", incomplete" if "incomplete" in causes else ", incomplete, as an input is"
            elif self._missing is not None:
                outcome += "; now complete"
            self._published = True
            self._missing = causes.get("incomplete", "an input is incomplete") if missing else None
        self._unpublished = unpublished
        files = tuple(self._files(record, results))
        return StageEvent(
            record.stage, record.finished_at, outcome, (*_failures(results),), files, unpublished
        )

    def _published_again(self, record: RunRecord, results: Iterable[CheckResult], by: str, same: bool) -> str:
        """Return the outcome of a published hour, and add why it was written again."""
        why = self._why(record, results)
        if self._unpublished:
            solved = why or "after a change of the checks or of the stream file"
            self.sentences.append(f"Solved {by}, {solved}.")
            return f"published; it was not published before{f', {why}' if why else ''}"
        if not self._published:
            return "published"
        if same:
            return "computed again, with the same rows"
        if why:
            before = f"; before, something was missing: {self._missing}" if self._missing else ""
            self.sentences.append(f"Written again {by}, {why}{before}.")
        return f"written again{f', {why}' if why else ''}"

    def _why(self, record: RunRecord, results: Iterable[CheckResult]) -> str:
        """Return as a part of a sentence which files made a run write the hour; empty if none did."""
        if record.stage != SOURCE_STAGE:
            return ""
        if record.files is None:
            named = self._checked(results)
            return (
                f"after {' and '.join(named)} {'was' if len(named) == 1 else 'were'} checked" if named else ""
            )
        texts = []
        for of in filter(self._is_of, record.files):
            content = "the new content of " if of.replaced else ""
            texts.append(f"{content}{of.path} {'came late' if of.late else 'was read'}")
        return f"as {' and '.join(texts)}" if texts else ""

    def _files(self, record: RunRecord, results: Iterable[CheckResult]) -> Iterator[str]:
        """Yield the files that a run read for the hour; of an older version, those that it checked."""
        if record.files is None:
            yield from self._checked(results)
            return
        for of in filter(self._is_of, record.files):
            remarks = [
                *(["a new content of this file"] if of.replaced else []),
                *(["came late"] if of.late else []),
                *([self._contents[of]] if of in self._contents else []),
                *([of.status] if of.status not in ("ingested", "duplicate") else []),
            ]
            yield ": ".join([format_file(of), *([", ".join(remarks)] if remarks else [])])

    def _is_of(self, file: FileRead) -> bool:
        return file.touches(self._hour)

    @staticmethod
    def _checked(results: Iterable[CheckResult]) -> list[str]:
        return sorted({of.file for of in results if of.file})
