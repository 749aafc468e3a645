"""The state that a run of ingest starts from, and the hours that it has to check."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.hour_sets import HourSet
from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import EMPTY_DIGEST, PartitionKey
from transom.engine.runner import pin_consistently
from transom.features.ingest.equal_files import names_of
from transom.features.ingest.file_records import (
    OWNS_ROWS,
    FilePolicy,
    FileRecord,
    ListedFile,
    Status,
    metadata_changed,
    needs_read,
)
from transom.features.ingest.inventory import BESIDE, RULES, Inventory, names_rules, with_names
from transom.features.ingest.landing import FileNames, Landing
from transom.features.ingest.specified import BLOCK, STAGE, Specified, partition_of
from transom.features.ingest.tables import Tables
from transom.ledger.ledger import Ledger
from transom.ledger.scope import Scope
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.packed_copy import SCATTERED, PackedCopy
from transom.storage.store import PinnedTables, Store


@dataclass(frozen=True)
class IngestSnapshot:
    """The ledger, the tables and the files as a run starts, and the hours of its scope.

    Attributes:
        ledger_state: of the stage.
        pins: the tables at fixed versions.
        scope: hours that the run may publish.
        recorded: the rows of `files` that concern the run.
        listed: the files of these in the landing folder, and those that are not recorded.
        rules: for decisions on files.
        expected: return the inputs of an hour by the specification.
        recompute: hours that are computed from their files even if they are fresh.
        files_kept: partitions that stay damaged, with the cause; the run does not publish their hours.
        inventory: all files; None if `recorded` and `listed` are all.
        like: return hours that are known to be fresh without checking each.
    """

    ledger_state: LedgerSnapshot
    pins: PinnedTables
    scope: Scope
    recorded: Mapping[str, FileRecord]
    listed: Mapping[str, ListedFile]
    rules: FilePolicy
    expected: Callable[[datetime], Mapping[str, str]]
    recompute: frozenset[datetime] = frozenset()
    files_kept: Mapping[PartitionKey, str] = field(default_factory=dict)
    inventory: Inventory | None = None
    like: Callable[[LedgerSnapshot], HourSet] = lambda ledger: HourSet()

    @cached_property
    def kept_hours(self) -> frozenset[datetime]:
        """The hours that the run does not publish."""
        return frozenset(partition.hour for partition in self.files_kept)

    def holding(self, partitions: Mapping[PartitionKey, str]) -> "IngestSnapshot":
        """Return this snapshot with more partitions that stay damaged; files that touch their hours wait.

        Args:
            partitions: each with the cause.
        """
        hours, permitted = {partition.hour for partition in partitions}, self.rules.permitted
        rules = replace(self.rules, permitted=lambda hour: hour not in hours and permitted(hour))
        return replace(self, files_kept={**self.files_kept, **partitions}, rules=rules)

    @cached_property
    def to_reread(self) -> frozenset[datetime]:
        """The hours whose files are read again: to recompute, or damaged and published by the run."""
        damaged = {key.hour for key, state in self.ledger_state.troubled() if state.damaged}
        reached = {
            hour
            for hour in damaged
            if hour == UNKNOWN_HOUR
            or self.scope.covers(hour)
            or self.scope.may_publish(hour, self.was_requested(hour))
        }
        return (self.recompute | reached) - self.kept_hours

    def lost(self, table: str) -> frozenset[datetime]:
        """Return the hours to reread in which a table had rows and none of them can be read."""
        states = {hour: self.ledger_state.get(partition_of(table, hour)) for hour in self.to_reread}
        return frozenset(
            hour
            for hour, state in states.items()
            if state is not None and state.damaged and not state.rows and state.digest != EMPTY_DIGEST
        )

    def in_scope(self, hour: datetime, status: Status | None) -> bool:
        """Return whether the run checks the files of an hour and a status; None is of a name."""
        known = status is not None or self.was_requested(hour)
        return hour == UNKNOWN_HOUR or self.scope.lists_files_of(hour, known, status == "waiting")

    def was_requested(self, hour: datetime) -> bool:
        """Return whether an earlier run requested an hour."""
        return hour in self.ledger_state.hours(STAGE)

    def stale(self) -> list[datetime]:
        """Return hours that are damaged, unfinished by a killed run, or of another specification."""
        present = self.recorded.keys() & self.listed.keys()
        differing = (self.recorded[path].touched for path in present if self._may_differ(path))
        return sorted(self._stale_in_ledger.union(*differing))

    @cached_property
    def _stale_in_ledger(self) -> frozenset[datetime]:
        ledger = self.ledger_state
        broken = (key.hour for key, state in ledger.troubled() if state.status in ("writing", "damaged"))
        return frozenset(broken).union(
            ledger.unlike(STAGE, BLOCK, "events", self.expected, self.like(ledger))
        )

    def _may_differ(self, path: str) -> bool:
        """Return whether a file may differ from its published content, which hours' inputs do not show."""
        known, listed = self.recorded[path], self.listed[path]
        # Files of other statuses are withheld or wait, which the ledger records.
        published = known.status in (*OWNS_ROWS, "missing")
        return metadata_changed(listed, known) or (published and needs_read(listed, known, self.rules))

    def inputs(self, hour: datetime, mixed: bool = False) -> Mapping[str, str] | None:
        """Return the inputs of an hour once it is published; None, which is always stale, if unknown.

        They are unknown if rows of several specifications are in the hour. They are unknown, too, if the hour
        was stale, a file touches it, and the run does not check the hour's own files.

        Args:
                mixed: whether it has rows of several specifications.
        """
        state, expected = self.ledger_state.get(partition_of("events", hour)), self.expected(hour)
        # An earlier chunk of the run checked the hours up to `repair_window` before this one.
        checked = self.scope.covers(hour) or (
            hour < self.scope.chunk.start and not self.scope.out_of_reach(hour)
        )
        fresh = state is None or hour == UNKNOWN_HOUR or checked or state.input_hashes == expected
        return expected if fresh and not mixed else None


def take_snapshot(
    store: Store,
    ledger: Ledger,
    stream: Stream,
    tables: Tables,
    interval: Interval,
    whole: Interval,
    recompute: bool = False,
) -> IngestSnapshot:
    """Pin the tables, list the landing folder, and return both.

    Args:
        whole: the run's interval, of which `interval` is a chunk.
        recompute: whether the hours are computed from their files even if they are fresh.

    Raises:
        LandingError: the landing folder is not there.
    """
    state, pins = pin_consistently(
        lambda: ledger.snapshot([STAGE]),
        lambda state: store.pin((table.name for table in tables), state.previous_versions()),
        [(STAGE, BLOCK, table.name) for table in tables],
    )
    requested = state.hours(STAGE)
    scope, specified = Scope.of(interval, whole, stream.repair_window, requested), Specified(stream)
    rules = FilePolicy(
        specified.shape,
        stream.source.on_conflict == "replace",
        lambda hour: hour == UNKNOWN_HOUR or scope.may_publish(hour, hour in requested),
        names_of(stream),
    )
    inventory = _inventory(store, state, pins, stream, specified)
    inventory.near(scope.around)
    hours = frozenset(interval.hours()) if recompute else frozenset()
    return IngestSnapshot(
        state, pins, scope, inventory.known, inventory.there, rules, specified.expected, hours,
        inventory=inventory, like=specified.like,
    )  # fmt: skip


def _inventory(
    store: Store, ledger: LedgerSnapshot, pins: PinnedTables, stream: Stream, specified: Specified
) -> Inventory:
    """Return all recorded files and the landing folder."""
    unreadable = {key.hour for key, state in ledger.troubled() if key.table == "files" and state.damaged}
    names, of_names = FileNames.of(stream), names_rules(stream)
    packed = PackedCopy(
        store.uri("files"),
        pins.stored("files"),
        {*unreadable, *pins.partially_written.get("files", {})},
        BESIDE,
    )
    kept, fresh = packed.valid, packed.uncopied
    partial = pins.read_partially_written("files", unreadable)
    outdated = pc.not_equal(kept[RULES], of_names)
    if packed.outdated or (pc.sum(outdated).as_py() or 0) > SCATTERED:
        parsed = [with_names(rows, names, of_names) for rows in (kept.filter(outdated), fresh)]
        kept = pa.concat_tables([kept.filter(pc.invert(outdated)), *parsed])
        fresh = fresh.slice(0, 0)
        packed.replace(kept)
    rows = pa.concat_tables([kept, fresh, partial], promote_options="default")
    return Inventory(rows, Landing.read(names), specified.usual_shape, of_names, specified.unlike)


def late_files(snapshot: IngestSnapshot, paths: Collection[str]) -> dict[str, FileRecord]:
    """Return the files that came too late for this run, of requested hours, as waiting.

    Args:
        paths: that the run checks.
    """
    return {
        path: FileRecord(
            path=path, hour=file.hour, status="waiting", spec_hash=snapshot.rules.shape(file.hour),
            status_reason=f"came later than `repair_window`; run {file.hour:%Y-%m-%dT%H:%M} again to take it",
            size=-1, modified=file.modified,
        )
        for path, file in snapshot.listed.items()
        if path not in paths and path not in snapshot.recorded and file.hour is not None
        and snapshot.was_requested(file.hour) and snapshot.scope.out_of_reach(file.hour)
    }  # fmt: skip
