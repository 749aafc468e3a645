"""The input hashes of hours of ingest that the specification determines. No Spark."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache

from transom.core.hour_sets import HourSet
from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import PartitionKey, code_version
from transom.engine.check_builders import waivers_of
from transom.features.ingest.checks import OF_SCHEDULE, file_checks, hour_checks
from transom.ledger.input_hashes import completeness, fingerprint
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream

STAGE = "ingest"
BLOCK = "events"
VERSION = 8
"""The version of the stage. Raise it if the code computes other rows."""
READING = 8
"""The version of reading. Raise both versions if files must be read again; missing files keep their rows."""


def partition_of(table: str, hour: datetime) -> PartitionKey:
    """Return a partition of the stage."""
    return PartitionKey(STAGE, BLOCK, table, hour)


class ExpectedInputs:
    """The input hashes of hours by the specification, compiled once.

    Hours differ only by their waivers, and by whether the schedule contains them.

    Attributes:
        waived_hours: the hours with waivers; the hash of their specification may differ.
        usual_spec_hash: the `spec_hash` of all other hours.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._file_checks, self._hour_checks = file_checks(stream), hour_checks(stream)
        self._waivers = waivers_of(stream)
        self.waived_hours = frozenset(item.hour for item in self._waivers if item.stage == STAGE)
        self._checks_schedule = any(check.name in OF_SCHEDULE for check in self._hour_checks)
        self._fingerprint = stream.ingest_shape()
        self._spec_hash_of, self._inputs_of = cache(self._hash_spec), cache(self._hash_inputs)
        self.usual_spec_hash = self._spec_hash_of(None)

    def spec_hash(self, hour: datetime) -> str:
        """Return the hash of the specification by which the files of an hour are read."""
        return self._spec_hash_of(hour if hour in self.waived_hours else None)

    def _hash_spec(self, waived: datetime | None) -> str:
        checks = completeness(STAGE, self._file_checks, self._waivers, waived)
        return fingerprint([self._fingerprint, READING, checks])

    def expected(self, hour: datetime) -> Mapping[str, str]:
        """Return the input hashes of an hour by this specification and this code."""
        excused = self._checks_schedule and not scheduled(self._stream, hour)
        return self._inputs_of(hour if hour in self.waived_hours else None, excused)

    def unchanged_hours(self, ledger: LedgerSnapshot) -> HourSet:
        """Return hours whose recorded input hashes certainly are the expected ones, without a look at each.

        Other hours may have them, too. An hour that no file name can have is never recorded with them: the
        hash of the specification covers everything that decides which names exist.
        """
        hours = ledger.recorded_as(STAGE, BLOCK, "events", self._inputs_of(None, False))
        start, end = self._stream.start, self._stream.until
        if self._checks_schedule and start is not None:
            hours = hours.since(start)
        if self._checks_schedule and end is not None:
            hours = hours.minus(hours.since(end))
        return hours.minus(HourSet.of(self.waived_hours))

    def _hash_inputs(self, waived: datetime | None, excused: bool) -> Mapping[str, str]:
        checks = completeness(STAGE, self._hour_checks, self._waivers, waived)
        if excused:
            checks = fingerprint([checks, "files may be missing"])
        spec = self._spec_hash_of(waived)
        return {"specification": spec, "version": code_version(VERSION), "completeness": checks}


def scheduled(stream: Stream, hour: datetime) -> bool:
    """Return whether the stream's schedule contains an hour, and a file name can have it."""
    early = stream.start is not None and hour < stream.start
    late = stream.until is not None and hour >= stream.until
    return hour == UNKNOWN_HOUR or not (early or late or not stream.source.pattern.can_name(hour))
