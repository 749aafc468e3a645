"""The order of items with equal counts."""

import pyarrow as pa
import pytest

from transom.features.items.bytes import order_keys


@pytest.mark.parametrize(
    ("columns", "ordered"),
    [
        # As text, by UTF-8 bytes.
        ({"port": [9, 10, 443]}, [10, 443, 9]),
        ({"host": ["é", "z", "Z", ""]}, ["", "Z", "z", "é"]),
        # Column by column: neither the length of the first one nor a separator counts.
        (
            {"host": ["b", "aaa", "aaa", "aa" * 200], "port": [1, 9, 10, 5]},
            [("aaa", 10), ("aaa", 9), ("aa" * 200, 5), ("b", 1)],
        ),
    ],
)
def test_items_with_equal_counts_are_ordered_by_text_column_by_column(
    columns: dict[str, list[object]], ordered: list[object]
) -> None:
    table = pa.table(columns)
    keys = order_keys(table)
    rows = list(zip(*columns.values(), strict=True)) if len(columns) > 1 else next(iter(columns.values()))
    assert [rows[place] for place in sorted(range(len(keys)), key=keys.__getitem__)] == ordered
