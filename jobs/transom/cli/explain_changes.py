"""What has changed since a node was computed, in words: as much as the ledger's hashes tell."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from transom.cli.freshness import Freshness
from transom.core.intervals import hours_in_words
from transom.features import sketch_stage as sketch
from transom.features.fills import stage as fill
from transom.features.frames import stage as frame
from transom.features.ingest import snapshot as scene
from transom.features.patterns import stage as widen
from transom.ledger.staleness import CHECKS
from transom.ledger.state import Node
from transom.stream import Stream

OWN = {
    "version": "transom computes it otherwise since",
    "completeness": "what decides whether it is complete has changed: a check, `expect`, or an `accept`",
    CHECKS: "its checks, or what is accepted of them, have changed since they withheld it",
}
"""Inputs that are neither a table nor the specification."""
WORDS: Mapping[str, str] = {
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
    "key": "`key`",
    "where": "`where`",
    "measures": "`measures`",
    "base": "the finest step of `levels`",
    "levels": "`levels`",
    "fit": "`fit`",
    "aging": "`aging`",
    "item": "`recurring`",
    "alerts": "`alert`",
    "ranges": "`levels`",
    "slide": "`levels`",
    "types": "the type or resolution of a column",
}
"""What a specification's shape is made of, as a stream's file says it."""
OF_PATTERNS: Mapping[str, str] = {
    "key": "`key`",
    "where": "`where`",
    "conditions": "a `where` of its steps",
    "all": "`count`",
    "elements": "`steps`",
    "never": "`never`",
    "detector": "the detector or its source",
    "columns": "the columns that its steps compare and `keep` names",
    "keep": "`keep`",
    "within": "`within`",
    "batch": "`batch`",
    "top": "`batch`",
    "max_records": "`max_records`",
    "merge": "`merge`",
    "types": "the type or resolution of a column",
}
"""The same of a pattern's."""
OF_FRAMES: Mapping[str, str] = {
    "key": "`key`",
    "conditions": "a condition on readings",
    "value": "the value, by `of` or a condition",
    "measures": "the measures that it reads",
    "every": "how far apart readings are",
    "ties": "`ties`",
    "baseline": "`baseline`",
    "kind": "`kind` or what goes with it",
    "meeting": "`when_open`",
    "lengths": "`min_length` or `max_length`",
    "records": "`min_records` or `max_records`",
    "missing": "`missing`",
    "idle": "`idle`",
    "known": "`known`",
    "stretch": "`stretch`, `scheme` or `longest`",
    "types": "the type or resolution of a column",
}
"""The same of frames."""
OF_FILLS: Mapping[str, str] = {
    "frame": "`frame`",
    "from": "`from`",
    "key": "the key of the frames",
    "by": "`by`",
    "where": "`where`",
    "stretch": "`lead`, `lag` or `shift`",
    "every": "how far apart readings are",
    "take": "`take`",
    "measures": "`measures`",
    "of": "the measures that it reads",
    "reach": "`reach`",
    "types": "the type or resolution of a column",
}
"""The same of fills."""


OF_PERSISTENCE: Mapping[str, str] = {
    "item": "`item`",
    "where": "`where`",
    "slots": "`slot` or `window`",
    "shares": "`alpha`, `epsilon` or `budget`",
    "seeds": "`seed` or `delta`",
    "watch": "`watch`",
    "ignore": "`ignore`",
    "types": "the type or resolution of a column",
}
"""The same of persistence."""


OF_SKETCHES: Mapping[str, str] = {
    **OF_PERSISTENCE,
    "tick": "`tick`",
    "window": "`window` or `tick`",
    "matrix": "`epsilon`, `delta` or `seed`",
    "kept": "`top`",
    "variant": "`variant`",
    "splitter": "`tau` or `mu`",
    "start": "`start`",
    "top": "`top`",
    "heavy": "`heavy`",
}
"""The same of all sketches."""


MAY_BE_GONE = {"aggregates": ("fit", "aging"), "cells": ("splitter",), "frequencies": ("splitter",)}
"""What a shape says only where there is some: it may have been taken out of the file."""


def own_input(fresh: Freshness, node: Node, name: str) -> str | None:
    """What has changed of an input that is no table; None for one that is a table."""
    if name == "specification":
        return specification(fresh, node)
    if name == "version":
        held, now = (fresh.book[node].inputs or {}).get(name), (fresh.expected(node) or {}).get(name)
        return f"{OWN[name]}: version {held} then, {now} now"
    return OWN.get(name)


def specification(fresh: Freshness, node: Node) -> str:
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
    said_as = {
        widen.NAME: OF_PATTERNS,
        frame.NAME: OF_FRAMES,
        fill.NAME: OF_FILLS,
        sketch.NAME: OF_SKETCHES,
    }.get(node.stage, WORDS)
    parts = list(dict.fromkeys(words for name, words in said_as.items() if name in names))
    if node.stage == scene.STAGE:
        parts.append("a check or an `accept` that decides whether files are complete")
    *most, last = parts
    said = f"{', '.join(most)} or {last}" if most else last
    return f"the stream's file says something else of what shapes it than when it was computed: {said}"


def _blocks(stream: Stream, stage: str) -> Collection[str]:
    of_stage: dict[str, Mapping[str, object]] = {
        widen.NAME: stream.patterns,
        frame.NAME: stream.frames,
        fill.NAME: stream.fills,
        sketch.NAME: {**stream.persistence, **stream.frequency},
    }
    return of_stage.get(stage, stream.aggregate)


def _shape(stream: Stream, node: Node) -> Mapping[str, object]:
    if node.stage == scene.STAGE:
        text = stream.ingest_shape()
    elif node.block not in _blocks(stream, node.stage):
        return {}
    else:
        shaped = {
            "batches": stream.batches_shape,
            "matches": stream.matches_shape,
            "episodes": stream.episodes_shape,
            "granules": stream.granules_shape,
            "aggregates": stream.reports_shape,
            "item_granules": stream.item_granules_shape,
            "recurring": stream.recurring_shape,
            "alerts": stream.alerts_shape,
            "open_frames": stream.open_frames_shape,
            "frames": stream.frames_shape,
            "fills": stream.fills_shape,
            "tuples": stream.tuples_shape,
            "persistent_items": stream.persistent_items_shape,
            "tick_matrices": stream.tick_matrices_shape,
            "cells": stream.cells_shape,
            "frequencies": stream.frequencies_shape,
        }
        text = shaped[node.table](node.block)
    return {**dict.fromkeys(MAY_BE_GONE.get(node.table, ())), **json.loads(text)}


def rows(table: str, hours: Sequence[datetime], since: Sequence[datetime]) -> str:
    """That rows of a table have changed.

    Args:
        hours: those that the node is computed from.
        since: those of them that have been written since, as far as is known.
    """
    if since:
        return f"the {table} of {hours_in_words(since)} have changed since it was computed from them"
    return (
        f"the {table} of {hours_in_words(hours)}, which it reads now, are not those that it was computed from"
    )
