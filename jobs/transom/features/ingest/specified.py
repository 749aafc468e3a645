"""What the specification says of the hours of ingest, without a session."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache

from transom.core.hour_sets import HourSet
from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import PartitionKey
from transom.engine.check_builders import waivers_of
from transom.features.ingest.checks import OF_SCHEDULE, file_checks, hour_checks
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.staleness import completeness, fingerprint
from transom.spec.stream import Stream

STAGE = "ingest"
BLOCK = "events"
VERSION = 8
"""Raised when the code changes what comes out, `READING` with it where a file has to be read again for that:
the rows of one that is gone cannot be made anew."""
READING = 8


def node_of(table: str, hour: datetime) -> PartitionKey:
    """A node of the stage."""
    return PartitionKey(STAGE, BLOCK, table, hour)


class Specified:
    """What the specification says of the hours of ingest: compiled once, whatever the number of hours.

    Only what is accepted of an hour, and whether the schedule has it, differ from hour to hour.

    Attributes:
        unlike: the hours in which something is accepted: their files may be read under another specification.
        usual_shape: the shape of all other hours.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._file_checks, self._hour_checks = file_checks(stream), hour_checks(stream)
        self._accepted = waivers_of(stream)
        self.unlike = frozenset(item.hour for item in self._accepted if item.stage == STAGE)
        self._of_schedule = any(check.name in OF_SCHEDULE for check in self._hour_checks)
        self._shape = stream.ingest_shape()
        self._shape_of, self._expected = cache(self._hash_shape), cache(self._hash_inputs)
        self.usual_shape = self._shape_of(None)

    def shape(self, hour: datetime) -> str:
        """A hash of the specification that the files of an hour are read under."""
        return self._shape_of(hour if hour in self.unlike else None)

    def _hash_shape(self, unlike: datetime | None) -> str:
        decided = completeness(STAGE, self._file_checks, self._accepted, unlike)
        return fingerprint([self._shape, READING, decided])

    def expected(self, hour: datetime) -> Mapping[str, str]:
        """The inputs of an hour, as this specification and this code have them."""
        excused = self._of_schedule and not scheduled(self._stream, hour)
        return self._expected(hour if hour in self.unlike else None, excused)

    def like(self, book: LedgerSnapshot) -> HourSet:
        """Hours whose events have the inputs that they should have: most of them."""
        held = book.recorded_as(STAGE, BLOCK, "events", self._expected(None, False))
        start, end = self._stream.start, self._stream.until
        if self._of_schedule and start is not None:
            held = held.since(start)
        if self._of_schedule and end is not None:
            held = held.minus(held.since(end))
        return held.minus(HourSet.of(self.unlike))

    def _hash_inputs(self, unlike: datetime | None, excused: bool) -> Mapping[str, str]:
        decided = completeness(STAGE, self._hour_checks, self._accepted, unlike)
        if excused:
            decided = fingerprint([decided, "files may be missing"])
        return {
            "specification": self._shape_of(unlike), "version": str(VERSION), "completeness": decided,
        }  # fmt: skip


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
    return hour == UNKNOWN_HOUR or not (before or after or not stream.path_pattern.can_name(hour))
