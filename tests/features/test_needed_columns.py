"""A file that lacks a column which a block of any feature needs is an error; a file of other records is
not.
"""

import json
from datetime import datetime
from typing import Any

from tests.support.stream_harness import StreamHarness, hour
from transom.core.partitions import PartitionKey
from transom.features.registry import FEATURES

STREAM = """
name: web
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", format: json}
columns:
  kind: kind
  user: user
  sum_of: {type: integer}
  in_step: {type: integer}
  kept: kept
  framed: {type: integer}
  filled: {type: integer}
  lasting: lasting
  often: often
  other: other
time: {column: at}
aggregates:
  load:
    {key: [user], where: "kind = 'a'", measures: {n: sum(sum_of)}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
patterns:
  steps:
    key: [user]
    within: 1 hour
    carry: [kept]
    steps: [{id: one, where: "kind = 'p' and in_step = 1"}, {id: two, where: "kind = 'q'"}]
frames:
  high: {key: [user], only: "kind = 'f'", kind: threshold, where: framed > 1, on_duplicate_time: first}
fills:
  beside: {frame: high, source: events, where: "kind = 'i'", measures: {s: sum(filled)}}
persistence:
  regulars:
    {item: [lasting], where: "kind = 's'", slot: 30 minutes, window: 3 hours, alpha: 0.7, epsilon: 0.6}
frequency:
  often: {item: [often], where: "kind = 't'", window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5}
"""
WHOLE = {
    "kind": "x", "user": "u", "sum_of": 1, "in_step": 1, "kept": "k", "framed": 2, "filled": 3,
    "lasting": "l", "often": "o", "other": "z",
}  # fmt: skip
LACKS = {
    1: ("a", "sum_of", "aggregates"),
    2: ("p", "in_step", "patterns"),
    3: ("q", "kept", "patterns"),
    4: ("f", "framed", "frames"),
    5: ("i", "filled", "fills"),
    6: ("s", "lasting", "persistence"),
    7: ("t", "often", "frequency"),
}
"""By hour: a kind of record, the column that its file lacks, the feature that needs it."""
KEYED = {8: "a", 9: "p", 10: "f", 11: "i"}
"""By hour: a kind of record, of which one lacks the key of the blocks that select it."""
FINE = 12
"""Of kinds that no block selects: it lacks every column but `kind`, and `user` where the pattern's second
step may match it, as it is of the kind `q` with `kept`.
"""


def test_file_without_a_column_that_a_block_needs_is_an_error(make_stream: Any) -> None:
    assert {feature for _, _, feature in LACKS.values()} == {feature.name for feature in FEATURES}
    day: StreamHarness = make_stream(STREAM)

    def land(number: int, *records: dict[str, Any]) -> None:
        at = {"at": f"2015-05-17T{number:02}:00:01Z"}
        day.land(number, [json.dumps(at | record) for record in records])

    for number, (kind, column, _) in LACKS.items():
        land(number, {**{name: value for name, value in WHOLE.items() if name != column}, "kind": kind})
    for number, kind in KEYED.items():
        whole = {**WHOLE, "kind": kind}
        land(number, whole, {**whole, "user": None})
    land(FINE, {"kind": "q", "user": "u", "kept": "k"}, {"kind": "w"})
    day.stage("ingest", 1, FINE + 1)
    snapshot = day.snapshot()
    result: dict[datetime, list[tuple[str, tuple[str, ...] | str | None]]] = {}
    for verdict in day.ledger.checks(snapshot, "ingest", {hour(number) for number in range(FINE + 1)}):
        if verdict.severity == "error" and not verdict.success:
            text = verdict.failing_rows if verdict.check == "used_fields_present" else verdict.column
            result.setdefault(verdict.partition.hour, []).append((verdict.check, text))
    expected: dict[datetime, list[tuple[str, tuple[str, ...] | str | None]]] = {
        hour(number): [("used_fields_present", (column,))] for number, (_, column, _) in LACKS.items()
    }
    assert result == expected | {hour(number): [("keys_not_null", "user")] for number in KEYED}
    statuses = {
        n: snapshot[PartitionKey("ingest", "events", "events", hour(n))].status for n in range(1, FINE + 1)
    }
    assert statuses == {n: "published" if n == FINE else "quarantined" for n in range(1, FINE + 1)}
