"""Why findings are no longer there: the files of their hours whose published content has changed."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from transom.alerts.delivery import GONE, Delivery
from transom.core.intervals import HOUR
from transom.core.terminal import escape_control_chars
from transom.spec.notify import PAGE
from transom.storage.tables import TableFolder, instant, literal, query

FILES = "files"
LOST = {"quarantined": "quarantined", "waiting": "waiting", "conflict": "conflicting"}
"""What a file is that was published and has no published content now, by its status; others are removed."""
NAMED = 3
"""The maximum number of files in a reason."""
UNKNOWN = (
    "no file of its hours has changed since the last message about it: an earlier file, later hours or the "
    "stream file have"
)
"""The reason without a changed file."""
MAX_JOINED = 500
"""The maximum number of findings that are looked up in others; the rest of a mass withdrawal is not."""


def files_version(tables: TableFolder) -> int | None:
    """Return the version of the table `files`; None if there is none."""
    try:
        return int(tables.open(FILES).version())
    except TableNotFoundError:
        return None


def reasons(
    tables: TableFolder, rows: Iterable[Delivery], lookback: Callable[[str], timedelta]
) -> dict[str, str]:
    """Return why each finding is gone, by id: the changed files of its hours, else of those it looks back to.

    Args:
        tables: the tables of the stream.
        rows: the last message about each finding.
        lookback: returns how far back a stage reads from an hour.
    """
    by_version: dict[int | None, list[Delivery]] = {}
    for row in rows:
        by_version.setdefault(row.files_version, []).append(row)
    others = _others(tables, [row for group in by_version.values() for row in group])
    texts = {}
    for version, group in by_version.items():
        spans = {row.finding_id: _span(row) for row in group}
        reach = max(lookback(row.stage) for row in group)
        start, end = min(span[0] for span in spans.values()), max(span[1] for span in spans.values())
        changed = _changed(tables, version, start - reach, end)
        for row in group:
            start, end = spans[row.finding_id]
            own = _within(changed, start, end) or _within(changed, start - lookback(row.stage), end)
            other = others.get(row.finding_id)
            parts = [_named(own)] if own else []
            parts += [f"it is now part of finding {other}"] if other else []
            texts[row.finding_id] = "; ".join(parts) or UNKNOWN
    return texts


Changed = tuple[str, datetime, datetime]
"""What happened to a file, and its first and last event."""


def _span(row: Delivery) -> tuple[datetime, datetime]:
    """Return the hours of a finding; the end is exclusive."""
    starts = [time for time in (row.start_time, row.first_hour, row.last_hour) if time is not None]
    ends = [row.last_hour + HOUR] + ([row.end_time] if row.end_time is not None else [])
    return min(starts), max(ends)


def _within(changed: Iterable[Changed], start: datetime, end: datetime) -> list[str]:
    return [text for text, first, last in changed if first < end and last >= start]


def _named(files: list[str]) -> str:
    rest = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
    return f"because of {', '.join(files[:NAMED])}{rest}"


def _changed(tables: TableFolder, version: int | None, start: datetime, end: datetime) -> list[Changed]:
    """Return the files with events in some hours whose published content differs from that of a version."""
    if version is None:
        return []
    try:
        current = tables.open(FILES)
        before = DeltaTable(current.table_uri, version=version)
    # An old version may be gone, as maintenance by hand may delete it.
    except DeltaError:
        return []
    first = "coalesce(least(t.first_event, o.first_event), t.first_event, o.first_event, t.hour, o.hour)"
    last = "coalesce(greatest(t.last_event, o.last_event), t.last_event, o.last_event, t.hour, o.hour)"
    found = query(
        current,
        "SELECT * FROM (SELECT coalesce(t.path, o.path) AS path, o.path IS NULL AS is_late, "
        "o.last_read_source_id IS DISTINCT FROM t.last_read_source_id AS is_new, t.status, "
        f"t.source_id IS NULL AS is_lost, {first} AS first, {last} AS last "
        "FROM t FULL JOIN o ON t.path = o.path WHERE t.source_id IS DISTINCT FROM o.source_id) "
        f"WHERE first < {instant(end)} AND last >= {instant(start)} ORDER BY path",
        o=before,
    ).to_pylist()
    changed = []
    for row in found:
        text = f"{_what(row)} {escape_control_chars(row['path'][:200])}"
        changed.append((text, row["first"].astimezone(UTC), row["last"].astimezone(UTC)))
    return changed


def _what(row: Mapping[str, Any]) -> str:
    """Return what happened to a file, before its name, in the words of the history of an hour."""
    if row["is_lost"]:
        return f"{LOST.get(row['status'], 'removed')} file"
    if row["is_late"]:
        return "late file"
    return "the new content of" if row["is_new"] else "now published file"


def _others(tables: TableFolder, rows: list[Delivery]) -> Mapping[str, str]:
    """Return the finding of the same subject that now covers the time of each of some findings."""
    if not rows:
        return {}
    others = {}
    for row in rows[:MAX_JOINED]:
        if row.start_time is None or row.end_time is None:
            continue
        same = " AND ".join(
            f"{name} IS NULL" if value is None else f"{name} = {literal(value)}"
            for name, value in (("block", row.block), ("key", row.key), ("item", row.item))
        )
        overlaps = f"start_time < {instant(row.end_time)} AND end_time > {instant(row.start_time)}"
        # A finding of another rule or level has the same subject, and overlapped it before, too.
        before = (
            f"SELECT finding_id FROM d WHERE recipient = '{PAGE}' AND time <= {instant(row.time)} "
            f"AND hash <> '{GONE}' AND {overlaps}"
        )
        found = query(
            tables.open("findings"),
            f"SELECT min(finding_id) AS id FROM t WHERE kind = {literal(row.kind)} AND {same} "
            f"AND {overlaps} AND finding_id NOT IN ({before})",
            d=tables.open("deliveries"),
        )
        if (other := found["id"][0].as_py()) is not None:
            others[row.finding_id] = other
    return others
