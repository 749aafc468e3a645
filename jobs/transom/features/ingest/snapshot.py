"""The state that a run of ingest starts from, and the hours that it must check."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.hour_sets import HourSet
from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import EMPTY_DIGEST, PartitionKey
from transom.engine.runner import pin_consistently
from transom.features.ingest.equal_files import names_of
from transom.features.ingest.expected_inputs import BLOCK, STAGE, ExpectedInputs, partition_of
from transom.features.ingest.file_records import OWNS_ROWS, FileRecord, ListedFile, Status
from transom.features.ingest.file_selection import FilePolicy, metadata_changed, needs_read
from transom.features.ingest.inventory import BESIDE, RULES, Inventory, names_rules, with_names
from transom.features.ingest.landing import FileNames, Landing
from transom.features.ingest.tables import Tables
from transom.ledger.ledger import Ledger
from transom.ledger.scope import Scope
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.packed_copy import SCATTERED, PackedCopy
from transom.storage.store import PinnedTables, Store

T = TypeVar("T")


@dataclass(frozen=True)
class IngestSnapshot:
    """The ledger, the tables and the files as a run starts, and the hours of its scope.

    Attributes:
        ledger_state: the ledger of the stage.
        pins: the tables at fixed versions.
        scope: the hours that the run may publish.
        recorded: the rows of `files` that concern the run, by path.
        listed: the files of `recorded` in the landing folder, and files that are not recorded, by path.
        rules: the policy for decisions on files.
        expected: returns the input hashes of an hour by the specification.
        recompute: the hours that are computed from their files even if they are fresh.
        kept_damage: the partitions that stay damaged, with the cause; the run does not publish their hours.
        inventory: all files; None if `recorded` and `listed` are all.
        unchanged_hours: as of `ExpectedInputs`.
    """

    ledger_state: LedgerSnapshot
    pins: PinnedTables
    scope: Scope
    recorded: Mapping[str, FileRecord]
    listed: Mapping[str, ListedFile]
    rules: FilePolicy
    expected: Callable[[datetime], Mapping[str, str]]
    recompute: frozenset[datetime] = frozenset()
    kept_damage: Mapping[PartitionKey, str] = field(default_factory=dict)
    inventory: Inventory | None = None
    unchanged_hours: Callable[[LedgerSnapshot], HourSet] = lambda ledger: HourSet()

    @cached_property
    def kept_hours(self) -> frozenset[datetime]:
        """The hours that the run does not publish."""
        return frozenset(partition.hour for partition in self.kept_damage)

    def select(self, select: Callable[[Inventory, T], Inventory], by: T) -> "IngestSnapshot":
        """Return this snapshot with the files that a `select_` method of the inventory adds."""
        if self.inventory is None:
            return self
        inventory = select(self.inventory, by)
        return replace(self, inventory=inventory, recorded=inventory.recorded, listed=inventory.present)

    def keep_damage(self, partitions: Mapping[PartitionKey, str]) -> "IngestSnapshot":
        """Return this snapshot with more partitions that stay damaged, each with the cause.

        Files that touch their hours wait.
        """
        hours, permitted = {partition.hour for partition in partitions}, self.rules.permitted
        rules = replace(self.rules, permitted=lambda hour: hour not in hours and permitted(hour))
        return replace(self, kept_damage={**self.kept_damage, **partitions}, rules=rules)

    @cached_property
    def to_reread(self) -> frozenset[datetime]:
        """The hours whose files are read again: recomputed and damaged ones that the run may publish."""
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
        states = ((hour, self.ledger_state.get(partition_of(table, hour))) for hour in self.to_reread)
        lost = ((h, s) for h, s in states if s is not None and s.damaged and not s.rows)
        return frozenset(hour for hour, state in lost if state.digest != EMPTY_DIGEST)

    def in_scope(self, hour: datetime, status: Status | None) -> bool:
        """Return whether the run checks the files of an hour and a status.

        Args:
            hour: the recorded hour of the file, or an hour in its name.
            status: the recorded status; None for an hour in a name.
        """
        known = status is not None or self.was_requested(hour)
        return hour == UNKNOWN_HOUR or self.scope.lists_files_of(hour, known, status == "waiting")

    def was_requested(self, hour: datetime) -> bool:
        """Return whether an earlier run requested an hour."""
        return hour in self.ledger_state.hours(STAGE)

    def had_run(self, hour: datetime) -> bool:
        """Return whether an earlier run has published or quarantined an hour."""
        state = self.ledger_state.get(partition_of("events", hour))
        return (
            hour != UNKNOWN_HOUR
            and self.was_requested(hour)
            and state is not None
            and state.status != "writing"
        )

    def is_requested(self, hour: datetime) -> bool:
        """Return whether this run or an earlier one requests an hour."""
        return hour in self.scope.requested or self.was_requested(hour)

    def is_too_late(self, hour: datetime) -> bool:
        """Return whether new files of an hour are late: it was requested, but is out of this run's reach."""
        return self.was_requested(hour) and self.scope.out_of_reach(hour)

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
            ledger.unlike(STAGE, BLOCK, "events", self.expected, self.unchanged_hours(ledger))
        )

    def _may_differ(self, path: str) -> bool:
        """Return whether a file may differ from its published content; the inputs of hours do not show it."""
        known, listed = self.recorded[path], self.listed[path]
        # Files of other statuses are quarantined or wait; the ledger records it.
        published = known.status in (*OWNS_ROWS, "missing")
        return metadata_changed(listed, known) or (published and needs_read(listed, known, self.rules))

    def inputs(self, hour: datetime, mixed: bool = False) -> Mapping[str, str] | None:
        """Return the input hashes of an hour to publish; None if unknown, which is always stale.

        They are unknown if the hour is stale and the run does not check its own files, only one of another
        hour.

        Args:
            hour: the hour.
            mixed: whether the hour has rows of several specifications; then they are unknown, too.
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
    """Pin the tables and list the landing folder; parameters and errors are as of `ingest`."""
    state, pins = pin_consistently(
        lambda: ledger.snapshot([STAGE]),
        lambda state: store.pin((table.name for table in tables), state.previous_versions()),
        [(STAGE, BLOCK, table.name) for table in tables],
    )
    requested = state.hours(STAGE)
    scope, inputs = Scope.of(interval, whole, stream.repair_window, requested), ExpectedInputs(stream)
    rules = FilePolicy(
        inputs.spec_hash,
        stream.source.on_conflict == "replace",
        lambda hour: hour == UNKNOWN_HOUR or scope.may_publish(hour, hour in requested),
        names_of(stream),
    )
    inventory = _inventory(store, state, pins, stream, inputs).select_near(scope.around)
    hours = frozenset(interval.hours()) if recompute else frozenset()
    return IngestSnapshot(
        state, pins, scope, inventory.recorded, inventory.present, rules, inputs.expected, hours,
        inventory=inventory, unchanged_hours=inputs.unchanged_hours,
    )  # fmt: skip


def _inventory(
    store: Store, ledger: LedgerSnapshot, pins: PinnedTables, stream: Stream, inputs: ExpectedInputs
) -> Inventory:
    """Return all recorded files and the landing folder."""
    unreadable = {key.hour for key, state in ledger.troubled() if key.table == "files" and state.damaged}
    names, of_names = FileNames.of(stream), names_rules(stream)
    unpacked = {*unreadable, *pins.partially_written.get("files", {})}
    packed = PackedCopy(store.uri("files"), pins.stored("files"), unpacked, BESIDE)
    kept, fresh = packed.valid, packed.uncopied
    partial = pins.read_partially_written("files", unreadable)
    outdated = pc.not_equal(kept[RULES], of_names)
    if packed.outdated or (pc.sum(outdated).as_py() or 0) > SCATTERED:
        parsed = [with_names(rows, names, of_names) for rows in (kept.filter(outdated), fresh)]
        kept = pa.concat_tables([kept.filter(pc.invert(outdated)), *parsed])
        fresh = fresh.slice(0, 0)
        packed.replace(kept)
    rows = pa.concat_tables([kept, fresh, partial], promote_options="default")
    return Inventory(rows, Landing.read(names), inputs.usual_spec_hash, of_names, inputs.waived_hours)
