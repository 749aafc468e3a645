"""What is said of values in titles and evidence, by the engine that makes them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from transom.findings.sql_text import ranged, shown

from transom.storage.tables import query


def said(folder: Path, expression: str, **columns: Any) -> object:
    write_deltalake(str(folder / "t"), pa.table({name: [value] for name, value in columns.items()}))
    return query(DeltaTable(str(folder / "t")), f"SELECT {expression} AS said FROM t").to_pylist()[0]["said"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3000.0, "3000"), (-2.0, "-2"), (0.5, "0.5"), (1e-9, "1e-9"), (10, "10"), (True, "true"),
        # A text stays as it is, whatever it looks like.
        ("3000.0", "3000.0"), ("1.0", "1.0"),
    ],
)  # fmt: skip
def test_a_whole_number_has_no_decimals(tmp_path: Path, value: Any, words: str) -> None:
    assert said(tmp_path, shown("length_s"), length_s=value) == words


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [
        (0.0101234, 0.2, "0.01012 to 0.2"),
        (3000.0, 123456.7, "3000 to 123457"),
        (0.0, -0.0, "0"),
        (2.00001, 2.00002, "2"),
        (3, 12, "3 to 12"),
        (7, 7, "7"),
    ],
)
def test_extremes_are_told_with_four_digits(tmp_path: Path, least: Any, most: Any, words: str) -> None:
    assert said(tmp_path, ranged('"least"', '"most"'), least=least, most=most) == words
