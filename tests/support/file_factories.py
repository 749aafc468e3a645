"""Small files: as listed and read, with a run's decisions on them and the published rows."""

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from transom.features.ingest.file_decisions import Decisions, decide
from transom.features.ingest.file_records import FileContent, FileRecord, ListedFile, source_id
from transom.features.ingest.file_selection import FilePolicy
from transom.features.ingest.hour_states import HourState, hour_states

HOUR = timedelta(hours=1)
DAY = datetime(2015, 5, 17, tzinfo=UTC)
RULES = FilePolicy(lambda hour: "shape", False, lambda hour: True)


def at(number: int) -> datetime:
    return DAY + number * HOUR


def listed(path: str, hour: int | None = 0, touched: int = 1) -> ListedFile:
    moment = None if hour is None else at(hour)
    return ListedFile(path, 10, at(touched), {}, moment, moment, moment + HOUR if moment else None)


def content(text: str, hours: Iterable[int] = (0,), failed: str | None = None) -> FileContent:
    data = text.encode()
    digest = hashlib.sha256(data).hexdigest()
    prefixes = {n: hashlib.sha256(data[:n]).hexdigest() for n in range(len(data) + 1)}
    moments = tuple(map(at, hours))
    return FileContent(
        source_id(digest, {}), digest, len(data), 1, 0, 1, 0, None, None, (), moments, prefixes, None, failed
    )


def run(
    known: dict[str, FileRecord],
    observed: dict[str, tuple[ListedFile, FileContent]],
    rules: FilePolicy = RULES,
) -> Decisions:
    there = {path: one for path, (one, _) in observed.items()}
    read = {path: what for path, (_, what) in observed.items()}
    return decide(known, there, read, there.keys() | known.keys(), rules)


def after(known: dict[str, FileRecord], decisions: Decisions) -> dict[str, FileRecord]:
    files = {**known, **decisions.files}
    return {path: file for path, file in files.items() if path not in decisions.dropped}


def one(text: str = "ab", path: str = "f", **more: Iterable[int]) -> dict[str, FileRecord]:
    return after({}, run({}, {path: (listed(path), content(text, **more))}))


def missing(files: dict[str, FileRecord], hour: int = 0, rules: FilePolicy = RULES) -> tuple[str, ...]:
    """Return the reasons why an hour is incomplete, as text."""
    return tuple(cause.text for cause in state(files, hour, rules).missing)


def state(files: dict[str, FileRecord], hour: int = 0, rules: FilePolicy = RULES) -> HourState:
    return hour_states(files.values(), [at(hour)], rules.spec_hash)[at(hour)]
