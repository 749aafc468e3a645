"""Parts of matrices add up to those of hours, and one that has lost a record is seen."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from transom.lake.tally import Tally
from transom.stages import tick_matrices
from transom.stages.frequency_answers import together
from transom.stages.frequency_blocks import FrequencyBlock, frequency_block_of
from transom.stages.frequency_checks import MISCOUNTED
from transom.stages.frequency_windows import Hours
from transom.stages.tick_matrices import AT, TICK, WHOLE, Added, Counted, schema_of
from transom.stream import parse
from unit.small_stream import base

HOUR = 7


def block() -> FrequencyBlock:
    said = {"item": ["user"], "window": "2 hours", "tick": "20 minutes", "epsilon": 0.6, "delta": 0.2}
    return frequency_block_of(parse(base() | {"frequency": {"x": said}}), "x")


def counts(rows: list[tuple[str, int, int]]) -> pa.Table:
    user, tick, records = zip(*rows, strict=True)
    many = len(rows)
    return pa.table({
        "user": user, "long": [False] * many, AT: [HOUR] * many, "tick": tick, "records": records,
        "watched": [False] * many,
    })  # fmt: skip


def counted(of: FrequencyBlock, *tasks: list[tuple[str, int, int]]) -> list[pa.RecordBatch]:
    between = tick_matrices._between(schema_of(of))
    return [part for rows in tasks for part in Counted(of, between)(counts(rows).to_batches())]


def added(of: FrequencyBlock, parts: list[pa.RecordBatch]) -> tuple[pa.Table, int]:
    tally = Tally()
    rows = pa.Table.from_batches(list(Added(of, schema_of(of))(iter(parts), tally)))
    return rows, tally.sums[HOUR, MISCOUNTED]


TASKS = [("a", 0, 5), ("b", 0, 1), ("a", 2, 7)], [("c", 0, 3), ("d", 1, 2)]


def test_parts_of_tasks_add_up() -> None:
    apart, wrong = added(block(), counted(block(), *TASKS))
    together, _ = added(block(), counted(block(), TASKS[0] + TASKS[1]))
    assert wrong == 0
    assert apart.sort_by([("row", "ascending"), ("tick", "ascending"), ("user", "ascending")]).equals(
        together.sort_by([("row", "ascending"), ("tick", "ascending"), ("user", "ascending")])
    )
    rows = apart.to_pylist()
    assert [row["records"] for row in rows if row["row"] == TICK] == [9, 2, 7]
    (whole,) = (row for row in rows if row["row"] == WHOLE)
    assert (whole["records"], sum(whole["cells"])) == (18, 18 * block().shape.rows)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_record_that_a_matrix_lacks_is_seen(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    of = replace(block(), shape=replace(block().shape, rows=rows))
    matrices_of = tick_matrices.matrices_of

    def lacking(*arguments: object) -> np.ndarray:
        found = matrices_of(*arguments)  # type: ignore[arg-type]
        found[0, 0, found[0, 0].argmax()] -= 1
        return found

    monkeypatch.setattr(tick_matrices, "matrices_of", lacking)
    _, wrong = added(of, counted(of, TASKS[0]))
    assert wrong == 1


def test_a_window_whose_rows_do_not_add_up_is_seen() -> None:
    of = block()
    rows, _ = added(of, counted(of, *TASKS))
    assert Hours.of(of, together(of, rows, None)).totals_off(HOUR) == 0
    changed = rows.to_pylist()
    (whole,) = (row for row in changed if row["row"] == WHOLE)
    whole["cells"][0] += 1
    again = pa.Table.from_pylist(changed, rows.schema)
    assert Hours.of(of, together(of, again, None)).totals_off(HOUR) == 1
