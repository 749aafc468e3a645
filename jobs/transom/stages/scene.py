"""What a run of ingest finds, and which hours it sees to."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from transom.intervals import NO_HOUR, Interval
from transom.lake.book import Book, Node
from transom.lake.ledger import Ledger
from transom.lake.quality import Check
from transom.lake.staleness import Scope, completeness, fingerprint
from transom.lake.store import Pins, Store
from transom.stages.checks import accepted_of, built_in
from transom.stages.contents import file_checks
from transom.stages.files import HOLDING, File, Listed, Rules, Status, has_to_be_read, says_otherwise
from transom.stages.ingest_tables import Tables
from transom.stages.landing import listed
from transom.stream import Stream

STAGE = "ingest"
BLOCK = "events"
VERSION = 6
"""Raised when the code changes what comes out, `READING` with it where a file has to be read again for that:
the rows of one that is gone cannot be made anew."""
READING = 6


@dataclass(frozen=True)
class Scene:
    """What a run finds: the ledger and the tables as they stand, the files, the hours that it sees to.

    Attributes:
        known: the rows of `files`.
        there: the files of the landing folder.
    """

    book: Book
    pins: Pins
    scope: Scope
    known: Mapping[str, File]
    there: Mapping[str, Listed]
    rules: Rules
    expected: Callable[[datetime], Mapping[str, str]]

    def looked_at(self, hour: datetime, status: Status | None) -> bool:
        """Whether the run sees to the files of an hour."""
        known = status is not None or self.asked_before(hour)
        return hour == NO_HOUR or self.scope.looks_at(hour, known, status == "waiting")

    def asked_before(self, hour: datetime) -> bool:
        """Whether somebody has asked for an hour before."""
        return hour in self.book.hours(STAGE)

    def stale(self) -> list[datetime]:
        """Hours that a killed run has left, or that another specification has made."""
        found = {
            node.hour
            for node, entry in self.book.items()
            if entry.status == "writing"
            or (node.table == "events" and entry.inputs != self.expected(node.hour))
        }
        both = self.known.keys() & self.there.keys()
        return sorted(found.union(*(self.known[path].touched for path in both if self.may_differ(path))))

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
) -> Scene:
    """What a run finds: the tables are pinned, the landing folder is listed.

    Args:
        stretch: the whole of which the interval is a chunk.

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

    def shape(hour: datetime) -> str:
        return file_shape(stream, hour)

    def expected(hour: datetime) -> Mapping[str, str]:
        return expected_of(stream, hour)

    rules = Rules(
        cache(shape),
        stream.source.on_change == "replace",
        lambda hour: hour == NO_HOUR or scope.may_publish(hour, hour in asked_before),
    )
    known = {file.path: file for file in map(File.of_row, pins.rows("files"))}
    by_name = stream.time is not None and stream.time.by_name
    there = listed(stream.path_pattern, by_name)
    return Scene(book, pins, scope, known, there, rules, cache(expected))


def file_shape(stream: Stream, hour: datetime) -> str:
    """A hash of the specification that the files of an hour are read under."""
    decided = completeness(STAGE, file_checks(stream), accepted_of(stream), hour)
    return fingerprint([stream.ingest_shape(), READING, decided])


def expected_of(stream: Stream, hour: datetime) -> Mapping[str, str]:
    """The inputs of an hour, as this specification and this code have them."""
    checks = hour_checks(stream)
    decided = completeness(STAGE, checks, accepted_of(stream), hour)
    if not scheduled(stream, hour) and any(check.name == "files_expected" for check in checks):
        decided = fingerprint([decided, "files may be missing"])
    return {"specification": file_shape(stream, hour), "version": str(VERSION), "completeness": decided}


def scheduled(stream: Stream, hour: datetime) -> bool:
    """Whether the stream's schedule has an hour: before it and after it a source may well be silent."""
    before = stream.start is not None and hour < stream.start
    return hour == NO_HOUR or not (before or (stream.until is not None and hour >= stream.until))


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
        *built_in(stream, "files_unchanged", metric="conflicts", at_most=0),
    )
