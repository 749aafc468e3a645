"""Output columns of aggregates: none is ambiguous, and every other name is accepted."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from transom.features.aggregates.output_columns import (
    AGGREGATE_COLUMNS,
    ALERT_COLUMNS,
    GRANULE_COLUMNS,
    ITEM_COLUMNS,
    aggregate_types,
)
from transom.features.aggregates.resolve import AggregateBlock, block_of
from transom.spec.validate import EVENT_COLUMNS
from transom.storage.tables import Table
from transom.stream import SpecificationError, Stream, parse

LEVELS = "RANGES 1 HOUR SLIDES 1 HOUR"
COLUMNS: dict[str, Any] = {
    "size": {"type": "integer"},
    "took": {"type": "number", "resolution": 0.1},
    "sum_size": {"type": "integer"},
    "values_took": {"type": "integer"},
    "mean_n": "x",
    "count_": "x",
    "level": "x",
    "records": "x",
}
NAMES = ["n", "size", "sum_n", "mean_n", "sum_sum_n", "values_took", "count", "records", "level"]


def test_fixed_columns_are_those_of_the_table_descriptions() -> None:
    for tables, fixed in (
        (["granules"], GRANULE_COLUMNS),
        (["aggregates"], AGGREGATE_COLUMNS),
        (["item_granules", "recurring"], ITEM_COLUMNS),
        (["alerts"], ALERT_COLUMNS),
        (["events"], EVENT_COLUMNS),
    ):
        described = {name for table in tables for name in Table.load(table).columns}
        assert sorted(fixed) == sorted(name for name in described if not name.startswith("*"))


def stream_of(blocks: dict[str, Any]) -> Stream:
    return parse(
        {
            "name": "app",
            "source": {"path": "in/%Y.json", "format": "json"},
            "columns": COLUMNS,
            "time": {"column": "at"},
            "aggregates": {name: {**block, "levels": LEVELS} for name, block in blocks.items()},
        }
    )


def test_blocks_may_share_an_aggregate_of_one_type() -> None:
    stream = stream_of(
        {
            "a": {"key": ["size"], "measures": {"n": "count", "m": "mean(took)", "records": "count"}},
            "b": {"key": [], "measures": {"n": "max(sum_size)", "m": "sum(took)"}},
        }
    )
    assert block_of(stream, "a").figures == {
        "n": "bigint",
        "m": "double",
        "values_m": "bigint",
        "sum_m": "double",
        "mean_m": "double",
        "min_m": "double",
        "max_m": "double",
        "records": "bigint",
    }
    assert aggregate_types(stream, "b")["n"] == "integer"
    assert aggregate_types(stream, "b")["m"] == "number"


def written_down(key: list[str], measures: dict[str, str]) -> dict[str, list[tuple[str, str, str]]]:
    """Return every column that a block fills, table by table, with its role and type, from the
    descriptions.
    """
    granules = [(name, "fixed", "") for name in GRANULE_COLUMNS]
    aggregates = [(name, "fixed", "") for name in AGGREGATE_COLUMNS]
    for name in key:
        granules.append((name, "key", ""))
        aggregates.append((name, "key", ""))
    measured = {text.split("(")[1].rstrip(")") for text in measures.values() if "(" in text}
    granules += [(f"{f}_{name}", "state", "") for name in measured for f in ("values", "sum", "min", "max")]
    for name, text in measures.items():
        function, _, column = text.rstrip(")").partition("(")
        kind = "double" if column == "took" else "bigint"
        aggregates.append((name, "figure", "double" if function == "mean" else kind))
        if column:
            aggregates += [(f"{f}_{name}", "figure", kind) for f in ("sum", "min", "max")]
            aggregates += [(f"values_{name}", "figure", "bigint"), (f"mean_{name}", "figure", "double")]
    return {"granules": granules, "aggregates": aggregates}


def clashes(blocks: dict[str, Any]) -> set[str]:
    """Return names that one block fills twice, or that have two roles or types in one table."""
    result = set()
    meanings: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for block in blocks.values():
        for table, columns in written_down(**block).items():
            result |= {name for name, times in Counter(name for name, _, _ in columns).items() if times > 1}
            for name, role, kind in columns:
                meanings.setdefault((table, name), set()).add((role, kind))
    return result | {name for (_, name), roles in meanings.items() if len(roles) > 1}


blocks = st.fixed_dictionaries(
    {
        "key": st.lists(st.sampled_from(sorted(COLUMNS)), max_size=2, unique=True),
        "measures": st.dictionaries(
            st.sampled_from(NAMES),
            st.sampled_from(["count", "sum(size)", "mean(size)", "max(took)", "min(sum_size)"]),
            min_size=1,
            max_size=3,
        ),
    }
)


@given(st.dictionaries(st.sampled_from(["a", "b"]), blocks, min_size=1))
def test_stream_is_refused_exactly_if_a_column_would_be_ambiguous(draws: dict[str, Any]) -> None:
    wrong = clashes(draws)
    event("clash" if wrong else "sound")
    if wrong:
        with pytest.raises(SpecificationError):
            stream_of(draws)
        return
    stream = stream_of(draws)
    resolved: list[AggregateBlock] = [block_of(stream, name) for name in draws]
    declared: dict[str, dict[str, str]] = {"key": {}, "state": {}, "figures": {}}
    for block in resolved:
        declared["key"] |= block.key
        declared["state"] |= block.state
        declared["figures"] |= block.figures
    Table.load("granules").declare(key=declared["key"], state=declared["state"])
    Table.load("aggregates").declare(key=declared["key"], figures=declared["figures"])
