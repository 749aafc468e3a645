"""Describe which parts of the stream file may have changed since a partition was computed."""

import json
from collections.abc import Mapping
from typing import cast

from transom.core.partitions import SOURCE_STAGE, PartitionKey
from transom.ledger.freshness import Freshness
from transom.spec.feature import Feature
from transom.spec.stream import Stream

LABELS = {
    "format": "`source.format`",
    "options": "`source.options`",
    "captures": "the captures of `source.path`",
    "name": "the time in `source.path`, `zone` or `event_time_range`",
    "columns": "`columns`",
    "derived": "`columns`",
    "time": "`time`",
    "time_captures": "`time`",
    "ties": "`time`",
    "rest": "`extra_fields`",
    "unique": "`unique`",
}
"""Names in the stream file, by key of the fingerprint of ingest."""


def changed_specification(stream: Stream, freshness: Freshness, partition: PartitionKey) -> str:
    """Return text on which keys of a partition's fingerprint may have changed.

    The ledger stores one hash of all keys. Keys of another table of the block whose hash is unchanged are
    excluded.
    """
    names = set(_fingerprint(stream, partition))
    if not names:
        return "the stream file no longer has this block"
    for other in freshness.partitions(partition.stage, partition.hour):
        if (other.block, other.table == partition.table) != (partition.block, False):
            continue
        reasons = {reason.code for reason in freshness.why_not(other)}
        if other in freshness.snapshot and not reasons & {"specification", "dropped"}:
            # Each table has other columns, so its types are no evidence about another one.
            names -= set(_fingerprint(stream, other)) - {"types"}
    is_source = partition.stage == SOURCE_STAGE
    labels = LABELS if is_source else _feature(stream, partition).labels
    parts = list(dict.fromkeys(words for name, words in labels.items() if name in names))
    if is_source:
        parts.append("a check or a waiver that decides whether files are complete")
    *others, last = parts
    listed = f"{', '.join(others)} or {last}" if others else last
    return f"the stream file has changed since it was computed: {listed}"


def _feature(stream: Stream, partition: PartitionKey) -> Feature[Stream]:
    return next(feature for feature in stream.features if partition.table in feature.fingerprints)


def _fingerprint(stream: Stream, partition: PartitionKey) -> Mapping[str, object]:
    if partition.stage == SOURCE_STAGE:
        return cast(dict[str, object], json.loads(stream.ingest_shape()))
    feature = _feature(stream, partition)
    if partition.block not in stream.blocks(feature.block):
        return {}
    text = feature.fingerprints[partition.table](stream, partition.block)
    return {**dict.fromkeys(feature.optional_keys.get(partition.table, ())), **json.loads(text)}
