"""Events and files of an hour, next to the number of files that are expected."""

from datetime import datetime

from transom.core.partitions import SOURCE_STAGE, PartitionKey
from transom.core.terminal import counted
from transom.features.ingest.expected_inputs import scheduled
from transom.spec.external_source import EVENTS
from transom.storage.tables import instant
from transom.views.open_stream import OpenStream


def events_text(opened: OpenStream, hour: datetime) -> str | None:
    """Return the number of published events of an hour as text; None if ingest never computed the hour."""
    state = opened.snapshot().get(PartitionKey(SOURCE_STAGE, EVENTS, EVENTS, hour))
    if state is None or state.status not in ("published", "expired"):
        return None
    return counted(state.rows, "event") if state.rows else "no event"


def files_text(opened: OpenStream, hour: datetime) -> str:
    """Return how many files an hour has, and how many are expected, as text."""
    table = opened.tables.pin("files")
    of = f"SELECT count(*) AS files FROM t WHERE hour = {instant(hour)} AND status <> 'missing'"
    came = sum(row["files"] for row in table.rows(of)) if table else 0
    source = opened.stream.source
    files, is_scheduled = counted(came, "file") if came else "no file", scheduled(opened.stream, hour)
    if not (source.expected_files or source.periods_checked):
        return f"{files} came; no file is expected of this stream, so no check finds a missing one"
    if not is_scheduled:
        return f"{files} came; none is expected, as the hour is outside of the stream's schedule"
    if source.expected_files:
        return f"{came} of {counted(source.expected_files, 'expected file')} came"
    return f"{files} came; files are expected for the whole hour, and a check finds missing ones"
