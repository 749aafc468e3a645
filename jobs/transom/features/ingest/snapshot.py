"""What a run of ingest finds, and which hours it sees to."""

from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.hour_sets import HourSet
from transom.core.intervals import NO_HOUR, Interval
from transom.features.check_builders import accepted_of, built_in
from transom.features.ingest.equal_files import names_of
from transom.features.ingest.file_checks import file_checks
from transom.features.ingest.file_records import (
    HOLDING,
    File,
    Listed,
    Rules,
    Status,
    has_to_be_read,
    says_otherwise,
)
from transom.features.ingest.inventory import BESIDE, RULES, Inventory, names_rules, with_names
from transom.features.ingest.landing import Landing, Names
from transom.features.ingest.tables import Tables
from transom.ledger.check import Check
from transom.ledger.ledger import Ledger
from transom.ledger.staleness import Scope, completeness, fingerprint
from transom.ledger.state import EMPTY_DIGEST, Book, Node
from transom.spec.stream import Stream
from transom.storage.packed_copy import SCATTERED, Packed
from transom.storage.store import Pins, Store

STAGE = "ingest"
BLOCK = "events"
OF_SCHEDULE = ("files_expected", "periods_covered")
"""Checks that no file may fail outside of the stream's schedule."""
VERSION = 8
"""Raised when the code changes what comes out, `READING` with it where a file has to be read again for that:
the rows of one that is gone cannot be made anew."""
READING = 8


@dataclass(frozen=True)
class Scene:
    """What a run finds: the ledger and the tables as they stand, the files, the hours that it sees to.

    Attributes:
        known: the rows of `files` that the run has to do with.
        there: the files of these that are in the landing folder, and those that are not known.
        inventory: all of them; None where these are all.
        like: hours that a book says at one look to be made by this specification.
        recompute: hours that are made again from their files even where they are fresh.
        held: nodes that are damaged and stay so, with the cause; the run publishes nothing in their hours.
    """

    book: Book
    pins: Pins
    scope: Scope
    known: Mapping[str, File]
    there: Mapping[str, Listed]
    rules: Rules
    expected: Callable[[datetime], Mapping[str, str]]
    recompute: frozenset[datetime] = frozenset()
    held: Mapping[Node, str] = field(default_factory=dict)
    inventory: Inventory | None = None
    like: Callable[[Book], HourSet] = lambda book: HourSet()

    @cached_property
    def held_hours(self) -> frozenset[datetime]:
        """The hours in which the run publishes nothing."""
        return frozenset(node.hour for node in self.held)

    def holding(self, nodes: Mapping[Node, str]) -> "Scene":
        """Return this scene with more nodes that stay damaged: files that touch their hours wait.

        Args:
            nodes: each with the cause.
        """
        hours, permitted = {node.hour for node in nodes}, self.rules.permitted
        rules = replace(self.rules, permitted=lambda hour: hour not in hours and permitted(hour))
        return replace(self, held={**self.held, **nodes}, rules=rules)

    @cached_property
    def to_reread(self) -> frozenset[datetime]:
        """The hours whose files are read again, whatever is known of them: those that the user names, and
        those that are marked as damaged and that this run publishes."""
        damaged = {node.hour for node, entry in self.book.troubled() if entry.damaged}
        reached = {
            hour
            for hour in damaged
            if hour == NO_HOUR
            or self.scope.sees_to(hour)
            or self.scope.may_publish(hour, self.asked_before(hour))
        }
        return (self.recompute | reached) - self.held_hours

    def lost(self, table: str) -> frozenset[datetime]:
        """The hours to read again of which a table has no row that can be read, and had some."""
        held = {hour: self.book.get(node_of(table, hour)) for hour in self.to_reread}
        return frozenset(
            hour
            for hour, entry in held.items()
            if entry is not None and entry.damaged and not entry.rows and entry.digest != EMPTY_DIGEST
        )

    def looked_at(self, hour: datetime, status: Status | None) -> bool:
        """Whether the run sees to the files of an hour."""
        known = status is not None or self.asked_before(hour)
        return hour == NO_HOUR or self.scope.looks_at(hour, known, status == "waiting")

    def asked_before(self, hour: datetime) -> bool:
        """Whether somebody has asked for an hour before."""
        return hour in self.book.hours(STAGE)

    def stale(self) -> list[datetime]:
        """Hours that a killed run has left, that are damaged, or that another specification has made."""
        both = [path for path in self.known if path in self.there]
        differing = (self.known[path].touched for path in both if self.may_differ(path))
        return sorted(self._stale_in_ledger.union(*differing))

    @cached_property
    def _stale_in_ledger(self) -> frozenset[datetime]:
        left = (
            node.hour
            for node, entry in self.book.troubled()
            if entry.status in ("writing", "damaged") or entry.in_old_form
        )
        return frozenset(
            (*left, *self.book.unlike(STAGE, BLOCK, "events", self.expected, self.like(self.book)))
        )

    def may_differ(self, path: str) -> bool:
        """Whether a file may say something else than what stands of it: no part of any hour's inputs."""
        known, there = self.known[path], self.there[path]
        # Others are held back or wait, and what they lack is said.
        stands = known.status in (*HOLDING, "gone")
        return says_otherwise(there, known) or (stands and has_to_be_read(there, known, self.rules))

    def inputs(self, hour: datetime, mixed: bool = False) -> Mapping[str, str] | None:
        """What an hour is made from once it is published; None, which is stale under any specification, where
        nobody can say.

        That is so of an hour with rows of several specifications; and of one that was stale, that a file
        touches, and whose own files the run does not look at: it is no longer what it was, and not what it
        should be.

        Args:
            mixed: as in `HourState`.
        """
        held, expected = self.book.get(node_of("events", hour)), self.expected(hour)
        # An earlier chunk of the run has seen to what lies before this one, as far as `heal`.
        seen_to = self.scope.sees_to(hour) or (hour < self.scope.chunk.start and not self.scope.leaves(hour))
        fresh = held is None or hour == NO_HOUR or seen_to or held.inputs == expected
        return expected if fresh and not mixed else None


def node_of(table: str, hour: datetime) -> Node:
    """A node of the stage."""
    return Node(STAGE, BLOCK, table, hour)


def scene_of(
    store: Store,
    ledger: Ledger,
    stream: Stream,
    tables: Tables,
    interval: Interval,
    stretch: Interval,
    recompute: bool = False,
) -> Scene:
    """What a run finds: the tables are pinned, the landing folder is listed.

    Args:
        stretch: the whole of which the interval is a chunk.
        recompute: whether the interval's hours are made again from their files even where they are fresh.

    Raises:
        LandingError: the landing folder is not there.
    """
    # As in `refresh`: the tables are pinned between two readings of the ledger that agree.
    while True:
        book = ledger.book([STAGE])
        pins = store.pin((table.name for table in tables), book)
        if ledger.book([STAGE]) == book:
            break
    asked_before = book.hours(STAGE)
    scope = Scope.of(interval, stretch, stream.heal, asked_before)

    specified = Specified(stream)
    rules = Rules(
        specified.shape,
        stream.source.on_change == "replace",
        lambda hour: hour == NO_HOUR or scope.may_publish(hour, hour in asked_before),
        names_of(stream),
    )
    inventory = _inventory(store, book, pins, stream, specified)
    inventory.near(scope.around)
    forced = frozenset(interval.hours()) if recompute else frozenset()
    return Scene(
        book, pins, scope, inventory.known, inventory.there, rules, specified.expected, forced,
        inventory=inventory, like=specified.like,
    )  # fmt: skip


def _inventory(store: Store, book: Book, pins: Pins, stream: Stream, specified: "Specified") -> Inventory:
    """All known files and the landing folder."""
    unread = {node.hour for node, entry in book.troubled() if node.table == "files" and entry.damaged}
    names, of_names = Names.of(stream), names_rules(stream)
    packed = Packed(store.uri("files"), pins.stored("files"), {*unread, *pins.torn.get("files", {})}, BESIDE)
    kept, fresh, torn = packed.kept, packed.fresh, pins.torn_rows("files", unread)
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


class Specified:
    """What the specification says of the hours of ingest: compiled once, whatever the number of hours.

    Only what is accepted of an hour, and whether the schedule has it, differ from hour to hour.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._file_checks, self._hour_checks = file_checks(stream), hour_checks(stream)
        self._accepted = accepted_of(stream)
        self._with_accepted = {item.hour for item in self._accepted if item.stage == STAGE}
        self._of_schedule = any(check.name in OF_SCHEDULE for check in self._hour_checks)
        self._shape = stream.ingest_shape()
        self._shapes: dict[datetime | None, str] = {}
        self._inputs: dict[tuple[datetime | None, bool], Mapping[str, str]] = {}

    @property
    def unlike(self) -> Set[datetime]:
        """The hours in which something is accepted: their files may be read under another specification."""
        return self._with_accepted

    @property
    def usual_shape(self) -> str:
        """The shape of all other hours."""
        return self._shape_of(None)

    def shape(self, hour: datetime) -> str:
        """A hash of the specification that the files of an hour are read under."""
        return self._shape_of(hour if hour in self._with_accepted else None)

    def _shape_of(self, unlike: datetime | None) -> str:
        if unlike not in self._shapes:
            decided = completeness(STAGE, self._file_checks, self._accepted, unlike)
            self._shapes[unlike] = fingerprint([self._shape, READING, decided])
        return self._shapes[unlike]

    def expected(self, hour: datetime) -> Mapping[str, str]:
        """The inputs of an hour, as this specification and this code have them."""
        excused = self._of_schedule and not scheduled(self._stream, hour)
        return self._expected(hour if hour in self._with_accepted else None, excused)

    def like(self, book: Book) -> HourSet:
        """Hours whose events have the inputs that they should have: most of them."""
        held = book.recorded_as(STAGE, BLOCK, "events", self._expected(None, False))
        start, end = self._stream.start, self._stream.until
        if self._of_schedule and start is not None:
            held = held.since(start)
        if self._of_schedule and end is not None:
            held = held.minus(held.since(end))
        return held.minus(HourSet.of(self._with_accepted))

    def _expected(self, unlike: datetime | None, excused: bool) -> Mapping[str, str]:
        if (unlike, excused) not in self._inputs:
            decided = completeness(STAGE, self._hour_checks, self._accepted, unlike)
            if excused:
                decided = fingerprint([decided, "files may be missing"])
            self._inputs[unlike, excused] = {
                "specification": self._shape_of(unlike), "version": str(VERSION), "completeness": decided,
            }  # fmt: skip
        return self._inputs[unlike, excused]


def file_shape(stream: Stream, hour: datetime) -> str:
    """As `Specified.shape`, of one hour."""
    return Specified(stream).shape(hour)


def expected_of(stream: Stream, hour: datetime) -> Mapping[str, str]:
    """As `Specified.expected`, of one hour."""
    return Specified(stream).expected(hour)


def scheduled(stream: Stream, hour: datetime) -> bool:
    """Whether the stream's schedule has an hour: before it and after it a source may well be silent, and no
    file can come of an hour that no name can say."""
    before = stream.start is not None and hour < stream.start
    after = stream.until is not None and hour >= stream.until
    return hour == NO_HOUR or not (before or after or not stream.path_pattern.can_name(hour))


def late_files(scene: Scene, paths: Collection[str]) -> dict[str, File]:
    """Files that came too late for this run, of hours that were asked for before: listed as waiting."""
    return {
        path: File(
            path=path, hour=file.hour, status="waiting", source_id=None, seen_id=None, content=None,
            shape=scene.rules.shape(file.hour), bytes=0, lines=0, header_lines=0, accepted=0, rejected=0,
            duplicates=0, first_event=None, last_event=None, columns=(), hours=(), held_back=(), lacks=None,
            detail=f"came later than `heal`; run {file.hour:%Y-%m-%dT%H:%M} again to take it",
            size=-1, modified=file.modified,
        )
        for path, file in scene.there.items()
        if path not in paths and path not in scene.known
        and file.hour is not None and scene.asked_before(file.hour) and scene.scope.leaves(file.hour)
    }  # fmt: skip


def hour_checks(stream: Stream) -> tuple[Check, ...]:
    """The checks of an hour, beside those of its files."""
    expected = stream.source.expect
    return (
        *(built_in(stream, "files_expected", metric="files", at_least=expected) if expected else ()),
        *(
            built_in(stream, "periods_covered", metric="uncovered", at_most=0)
            if stream.source.periods_checked
            else ()
        ),
        *built_in(stream, "files_unchanged", metric="conflicts", at_most=0),
        *(
            built_in(stream, "files_distinct", metric="equal", at_most=0)
            if stream.source.equal_files == "keep"
            else ()
        ),
    )
