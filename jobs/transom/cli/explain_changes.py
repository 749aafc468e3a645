"""What has changed since a node was computed, in words: as much as the ledger's hashes tell."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from transom.cli.freshness import Freshness
from transom.core.intervals import format_hours
from transom.core.partitions import PartitionKey
from transom.features.ingest.specified import STAGE
from transom.ledger.staleness import CHECKS
from transom.spec.feature import Feature
from transom.spec.stream import Stream

LABELS = {
    "format": "`source.format`",
    "options": "`source.options`",
    "captures": "the captures of `source.path`",
    "name": "the time in `source.path`, `zone` or `holds`",
    "columns": "`columns`",
    "derived": "`columns`",
    "time": "`time`",
    "time_captures": "`time`",
    "ties": "`time`",
    "rest": "`rest`",
    "unique": "`unique`",
}
"""What the keys of ingest's fingerprint are called in the stream's file."""
BUILTIN_INPUT_LABELS = {
    "version": "transom computes it otherwise since",
    "completeness": "what decides whether it is complete has changed: a check, `expect`, or an `accept`",
    CHECKS: "its checks, or what is accepted of them, have changed since they withheld it",
}
"""Inputs that are neither a table nor the specification."""


def own_input(fresh: Freshness, node: PartitionKey, name: str) -> str | None:
    """What has changed of an input that is no table; None for one that is a table."""
    if name == "specification":
        return specification(fresh, node)
    if name == "version":
        held, now = (fresh.book[node].inputs or {}).get(name), (fresh.expected(node) or {}).get(name)
        return f"{BUILTIN_INPUT_LABELS[name]}: version {held} then, {now} now"
    return BUILTIN_INPUT_LABELS.get(name)


def specification(fresh: Freshness, node: PartitionKey) -> str:
    """Which part of the stream's file may have changed.

    The ledger keeps a hash of all that shapes a table. What another table of the block is shaped by as well,
    and stands by, is none of it.
    """
    names = set(_shape(fresh.stream, node))
    if not names:
        return "the stream's file has this block no longer"
    for other in fresh.nodes(node.stage, node.hour):
        beside = other.block == node.block and other.table != node.table and other in fresh.book
        if beside and "specification" not in fresh.differs(other):
            # The types that each of them depends on are of other columns.
            names -= set(_shape(fresh.stream, other)) - {"types"}
    labels = LABELS if node.stage == STAGE else _feature(fresh.stream, node).labels
    parts = list(dict.fromkeys(words for name, words in labels.items() if name in names))
    if node.stage == STAGE:
        parts.append("a check or an `accept` that decides whether files are complete")
    *most, last = parts
    said = f"{', '.join(most)} or {last}" if most else last
    return f"the stream's file says something else of what shapes it than when it was computed: {said}"


def _feature(stream: Stream, node: PartitionKey) -> Feature[Stream]:
    return next(feature for feature in stream.features if node.table in feature.fingerprints)


def _shape(stream: Stream, node: PartitionKey) -> Mapping[str, object]:
    if node.stage == STAGE:
        return cast(dict[str, object], json.loads(stream.ingest_shape()))
    feature = _feature(stream, node)
    if node.block not in stream.blocks(feature.block):
        return {}
    text = feature.fingerprints[node.table](stream, node.block)
    return {**dict.fromkeys(feature.optional_keys.get(node.table, ())), **json.loads(text)}


def rows(table: str, hours: Sequence[datetime], since: Sequence[datetime]) -> str:
    """That rows of a table have changed.

    Args:
        hours: those that the node is computed from.
        since: those of them that have been written since, as far as is known.
    """
    if since:
        return f"the {table} of {format_hours(since)} have changed since it was computed from them"
    return (
        f"the {table} of {format_hours(hours)}, which it reads now, are not those that it was computed from"
    )
