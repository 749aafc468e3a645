"""What a run of ingest finds, and which hours it sees to."""

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
from transom.features.ingest.specified import BLOCK, STAGE, Specified, node_of
from transom.features.ingest.tables import Tables
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.staleness import Scope
from transom.spec.stream import Stream
from transom.storage.packed_copy import SCATTERED, PackedCopy
from transom.storage.store import PinnedTables, Store


@dataclass(frozen=True)
class IngestSnapshot:
    """What a run finds: the ledger and the tables as they stand, the files, the hours that it sees to.

    Attributes:
        recorded: the rows of `files` that the run has to do with.
        listed: the files of these that are in the landing folder, and those that are not known.
        inventory: all of them; None where these are all.
        like: hours that a book says at one look to be made by this specification.
        recompute: hours that are made again from their files even where they are fresh.
        files_kept: nodes that are damaged and stay so, with the cause; the run publishes nothing in their
            hours.
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
    like: Callable[[LedgerSnapshot], HourSet] = lambda book: HourSet()

    @cached_property
    def kept_hours(self) -> frozenset[datetime]:
        """The hours in which the run publishes nothing."""
        return frozenset(node.hour for node in self.files_kept)

    def holding(self, nodes: Mapping[PartitionKey, str]) -> "IngestSnapshot":
        """Return this scene with more nodes that stay damaged: files that touch their hours wait.

        Args:
            nodes: each with the cause.
        """
        hours, permitted = {node.hour for node in nodes}, self.rules.permitted
        rules = replace(self.rules, permitted=lambda hour: hour not in hours and permitted(hour))
        return replace(self, files_kept={**self.files_kept, **nodes}, rules=rules)

    @cached_property
    def to_reread(self) -> frozenset[datetime]:
        """The hours whose files are read again, whatever is known of them: those that the user names, and
        those that are marked as damaged and that this run publishes."""
        damaged = {node.hour for node, entry in self.ledger_state.troubled() if entry.damaged}
        reached = {
            hour
            for hour in damaged
            if hour == UNKNOWN_HOUR
            or self.scope.covers(hour)
            or self.scope.may_publish(hour, self.was_requested(hour))
        }
        return (self.recompute | reached) - self.kept_hours

    def lost(self, table: str) -> frozenset[datetime]:
        """The hours to read again of which a table has no row that can be read, and had some."""
        held = {hour: self.ledger_state.get(node_of(table, hour)) for hour in self.to_reread}
        return frozenset(
            hour
            for hour, entry in held.items()
            if entry is not None and entry.damaged and not entry.rows and entry.digest != EMPTY_DIGEST
        )

    def in_scope(self, hour: datetime, status: Status | None) -> bool:
        """Whether the run sees to the files of an hour."""
        known = status is not None or self.was_requested(hour)
        return hour == UNKNOWN_HOUR or self.scope.lists_files_of(hour, known, status == "waiting")

    def was_requested(self, hour: datetime) -> bool:
        """Whether somebody has asked for an hour before."""
        return hour in self.ledger_state.hours(STAGE)

    def stale(self) -> list[datetime]:
        """Hours that a killed run has left, that are damaged, or that another specification has made."""
        both = [path for path in self.recorded if path in self.listed]
        differing = (self.recorded[path].touched for path in both if self.may_differ(path))
        return sorted(self._stale_in_ledger.union(*differing))

    @cached_property
    def _stale_in_ledger(self) -> frozenset[datetime]:
        left = (
            node.hour
            for node, entry in self.ledger_state.troubled()
            if entry.status in ("writing", "damaged")
        )
        return frozenset(
            (
                *left,
                *self.ledger_state.unlike(
                    STAGE, BLOCK, "events", self.expected, self.like(self.ledger_state)
                ),
            )
        )

    def may_differ(self, path: str) -> bool:
        """Whether a file may say something else than what stands of it: no part of any hour's inputs."""
        known, there = self.recorded[path], self.listed[path]
        # Others are held back or wait, and what they lack is said.
        stands = known.status in (*OWNS_ROWS, "missing")
        return metadata_changed(there, known) or (stands and needs_read(there, known, self.rules))

    def inputs(self, hour: datetime, mixed: bool = False) -> Mapping[str, str] | None:
        """What an hour is made from once it is published; None, which is stale under any specification, where
        nobody can say.

        That is so of an hour with rows of several specifications; and of one that was stale, that a file
        touches, and whose own files the run does not look at: it is no longer what it was, and not what it
        should be.

        Args:
            mixed: as in `HourState`.
        """
        held, expected = self.ledger_state.get(node_of("events", hour)), self.expected(hour)
        # An earlier chunk of the run has seen to what lies before this one, as far as `repair_window`.
        seen_to = self.scope.covers(hour) or (
            hour < self.scope.chunk.start and not self.scope.out_of_reach(hour)
        )
        fresh = held is None or hour == UNKNOWN_HOUR or seen_to or held.input_hashes == expected
        return expected if fresh and not mixed else None


def take_snapshot(
    store: Store,
    ledger: Ledger,
    stream: Stream,
    tables: Tables,
    interval: Interval,
    stretch: Interval,
    recompute: bool = False,
) -> IngestSnapshot:
    """What a run finds: the tables are pinned, the landing folder is listed.

    Args:
        stretch: the whole of which the interval is a chunk.
        recompute: whether the interval's hours are made again from their files even where they are fresh.

    Raises:
        LandingError: the landing folder is not there.
    """
    book, pins = pin_consistently(
        lambda: ledger.snapshot([STAGE]),
        lambda book: store.pin((table.name for table in tables), book.previous_versions()),
        [(STAGE, BLOCK, table.name) for table in tables],
    )
    asked_before = book.hours(STAGE)
    scope = Scope.of(interval, stretch, stream.repair_window, asked_before)

    specified = Specified(stream)
    rules = FilePolicy(
        specified.shape,
        stream.source.on_conflict == "replace",
        lambda hour: hour == UNKNOWN_HOUR or scope.may_publish(hour, hour in asked_before),
        names_of(stream),
    )
    inventory = _inventory(store, book, pins, stream, specified)
    inventory.near(scope.around)
    forced = frozenset(interval.hours()) if recompute else frozenset()
    return IngestSnapshot(
        book, pins, scope, inventory.known, inventory.there, rules, specified.expected, forced,
        inventory=inventory, like=specified.like,
    )  # fmt: skip


def _inventory(
    store: Store, book: LedgerSnapshot, pins: PinnedTables, stream: Stream, specified: Specified
) -> Inventory:
    """All known files and the landing folder."""
    unread = {node.hour for node, entry in book.troubled() if node.table == "files" and entry.damaged}
    names, of_names = FileNames.of(stream), names_rules(stream)
    packed = PackedCopy(
        store.uri("files"), pins.stored("files"), {*unread, *pins.partially_written.get("files", {})}, BESIDE
    )
    kept, fresh, torn = packed.kept, packed.fresh, pins.read_partially_written("files", unread)
    others = pc.not_equal(kept[RULES], of_names)
    if packed.old or (pc.sum(others).as_py() or 0) > SCATTERED:
        as_named = kept.filter(pc.invert(others))
        kept = pa.concat_tables(
            [as_named, *(with_names(rows, names, of_names) for rows in (kept.filter(others), fresh))]
        )
        fresh = fresh.slice(0, 0)
        packed.keep(kept)
    rows = pa.concat_tables([kept, fresh, torn], promote_options="default")
    landing = Landing.looked_into(names)
    return Inventory(rows, landing, specified.usual_shape, of_names, specified.unlike)


def late_files(scene: IngestSnapshot, paths: Collection[str]) -> dict[str, FileRecord]:
    """Files that came too late for this run, of hours that were asked for before: listed as waiting."""
    return {
        path: FileRecord(
            path=path, hour=file.hour, status="waiting", spec_hash=scene.rules.shape(file.hour),
            status_reason=f"came later than `repair_window`; run {file.hour:%Y-%m-%dT%H:%M} again to take it",
            size=-1, modified=file.modified,
        )
        for path, file in scene.listed.items()
        if path not in paths and path not in scene.recorded
        and file.hour is not None and scene.was_requested(file.hour) and scene.scope.out_of_reach(file.hour)
    }  # fmt: skip
