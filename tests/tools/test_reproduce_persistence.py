"""Rates equal those of the listings, item by item; each claim is printed if true, and with NO if not."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduce import persistence as study
from reproduce.presence import DATA, hashes
from transom.features.persistence.algorithm.item_slot_hash import item_slot_hash
from transom.features.persistence.algorithm.params import PersistenceParams
from transom.features.persistence.algorithm.reference import FixedWindow

SMALL = 300


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    return study.summed(pd.DataFrame([row for data in DATA for row in study.points(few(data), SMALL)]))


def few(data: Any) -> Any:
    return replace(data, windows=1)


@pytest.mark.parametrize("data", DATA, ids=lambda data: data.name)
def test_point_equals_the_result_of_the_listing(data: Any) -> None:
    (first, present), seed = next(data.presences(SMALL)), 2
    requested = PersistenceParams(data.slots, Fraction("0.5"), Fraction("0.2"))
    listing = FixedWindow(requested, lambda item, slot: item_slot_hash(item, slot, seed))
    for slot in range(data.slots):
        for item in np.flatnonzero(present[:, slot]).tolist():
            listing.take(b"%d" % item, first + slot)
    named = {int(item) for item in listing.reported()}
    persistence = present.sum(axis=1)
    persistent = {*np.flatnonzero(persistence >= data.slots / 2).tolist()}
    row = study._of(requested, present, persistence, hashes(present, first, seed))
    assert row["missed"] == len(persistent - named)
    assert row["wrong"] == len(named - persistent)
    assert row["persistent"] == len(persistent)
    assert row["below"] == 0
    errors = [
        listing.tuples[b"%d" % item][0] + 1 / float(requested.tau) - persistence[item] for item in named
    ]
    assert row["error"] == pytest.approx(float(np.sqrt(np.mean(np.square(errors)))))


def test_grid_is_that_of_the_paper_without_points_that_track_every_item(found: pd.DataFrame) -> None:
    count = found.groupby("data").size()
    slots = {data.name: data.slots for data in DATA}
    for name, points in count.items():
        assert points == 2 * sum(epsilon * slots[str(name)] >= 2 for _, epsilon in study.grid())
    assert (found.below == 0).all()
    assert found.fnr.dropna().between(0, 1).all()


def verdicts(found: pd.DataFrame, **changes: Any) -> list[str]:
    stored = [{"data": "Synthetic1", "epsilon": 0.1 * n, "psc": 1.0 + n} for n in range(3)]
    output = study.verdicts(found.assign(**changes), pd.DataFrame(stored))
    return [text.partition(":")[0] for text in output]


def test_false_claims_are_reported(found: pd.DataFrame) -> None:
    slots = found.data.map({data.name: data.slots for data in DATA})
    rising = found.epsilon / 20

    def rates(of_one: pd.Series, of_three: float = 0.0025) -> dict[str, Any]:
        return {"fnr": of_one.where(found.instances == 1, of_three)}

    good = rates(rising) | {
        "fpr": 0.01, "sc": found.epsilon * slots / 2, "below": 0, "error": 2.0, "told": 1.0,
        "persistent": 10**6, "surer": 0.005, "more missed": 0,
    }  # fmt: skip
    assert verdicts(found, **good) == ["yes"] * 24
    assert verdicts(found, **good | rates(rising + 0.14)).count("NO") == 3
    assert verdicts(found, **good | rates(0.05 - rising)).count("NO") == 3
    assert verdicts(found, **good | rates(rising, 0.0027)).count("NO") == 3
    assert verdicts(found, **good | {"fpr": 0.1}).count("NO") == 2
    assert verdicts(found, **good | {"sc": found.epsilon * slots}).count("NO") == 3
    assert verdicts(found, **good | {"below": 1}).count("NO") == 6
    assert verdicts(found, **good | {"told": 3.0}).count("NO") == 2
    assert verdicts(found, **good | {"surer": 0.02}).count("NO") == 3
    assert verdicts(found, **good | {"more missed": 1}).count("NO") == 3


@pytest.mark.full
def test_report_has_a_table_for_each_figure_of_the_paper(
    found: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "FOLDER", tmp_path)
    stored = pd.DataFrame([{"data": "Synthetic1", "epsilon": 0.1, "psc": 2.5}])
    lines = "\n".join(study.written(found, stored, ["yes: so"], SMALL)).splitlines()
    assert "| Synthetic1 | 0.1 | 2.50 |" in lines
    assert sum(line.startswith("| Synthetic2, 1 instances: alpha") for line in lines) == 6
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "error.svg", "fnr.svg", "fpr.svg", "report.md", "sc.svg", "surer.svg", "told.svg"
    ]  # fmt: skip
