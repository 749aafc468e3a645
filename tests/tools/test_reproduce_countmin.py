"""Errors equal those of the listings, record by record; each claim is printed if true, and with NO if not."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduce import countmin as study
from reproduce import window_errors
from reproduce.item_streams import (
    ATTACKED,
    ITEMS,
    NAMES,
    NEXT,
    TARGET,
    attack,
    chances,
    shifting,
    swapping,
)
from reproduce.window_errors import LOOKS, VARIANTS, errors
from transom.features.frequency.algorithm.params import Shape
from transom.features.frequency.algorithm.reference import Perfect, Proportional, Simple
from transom.features.frequency.algorithm.splitter_reference import FixedPointSplitter

SHAPE, WINDOW = Shape(2, 6, 3), 2 * LOOKS


def test_errors_equal_those_of_the_listings() -> None:
    stream = shifting(np.random.default_rng(2), "Plateau", 3 * WINDOW + 7, 4, 90) % 40
    items = np.arange(40)
    result = errors(stream, items, SHAPE, WINDOW)
    kinds = {
        "Simple": Simple,
        "Proportional": Proportional,
        "Splitter": FixedPointSplitter,
        "Perfect": Perfect,
    }
    sketches = {name: kind(SHAPE, WINDOW) for name, kind in kinds.items()}
    looks = iter(zip(result.steps, *(result.errors[name] for name in VARIANTS), result.splits, strict=True))
    observed = 0
    for number, item in enumerate(stream.tolist(), 1):
        for sketch in sketches.values():
            sketch.update(b"%d" % item)
        if number % (WINDOW // LOOKS) or number <= WINDOW:
            continue
        step, *of_variants, splits = next(looks)
        assert step == number
        estimates = {name: np.array([s.estimate(b"%d" % i) for i in items]) for name, s in sketches.items()}
        for name, error in zip(VARIANTS, of_variants, strict=True):
            assert error == np.mean((estimates[name] - estimates["Perfect"]) ** 2), (name, number)
        splitter = sketches["Splitter"]
        assert isinstance(splitter, FixedPointSplitter)
        assert splits == sum(max(0, len(queue) - 2) for _, queue in splitter.queues())
        assert result.estimates["truth"][observed] == np.count_nonzero(stream[number - WINDOW : number] == 0)
        observed += 1
    assert observed == len(result.steps) == 2 * LOOKS + 3
    assert max(result.errors["Simple"]) > max(result.errors["Splitter"]) > 0


@pytest.mark.parametrize("name", NAMES)
def test_distributions_equal_those_of_the_paper(name: str) -> None:
    of = chances(name, 4)
    assert of.sum() == pytest.approx(1)
    ratios = {"Uniform": 1, "Normal": np.exp(-0.5), "Zipf 1": 1 / 2, "Zipf 2": 1 / 4, "Plateau": 1}
    limit = int(of.argmax())
    assert of[limit + 1] / of[limit] == pytest.approx(ratios[name])
    draws = shifting(np.random.default_rng(1), name, 4000, 4, 1000)
    assert draws.min() >= 0
    assert draws.max() < ITEMS
    if name == "Zipf 2":
        tops = [np.bincount(draws[at : at + 1000]).argmax() for at in range(0, 4000, 1000)]
        assert tops == [0, 4, 8, 12]
    assert len(swapping(np.random.default_rng(1), [name, "Uniform"], 500, 4, 100)) == 1000


def test_attack_has_the_shares_of_the_paper() -> None:
    draws = attack(np.random.default_rng(3), 300_000)
    counts = np.bincount(draws, minlength=ATTACKED) / len(draws)
    assert counts[0] == pytest.approx(TARGET, rel=0.05)
    assert counts[1] == pytest.approx(NEXT, rel=0.1)
    assert (draws[:10_000] == 0).mean() < TARGET / 5 < (draws[-10_000:] == 0).mean() / 5


def point(figure: str, of: str, at: float, **values: float) -> dict[str, Any]:
    usual: dict[str, Any] = {"Simple": 1.2e7, "Proportional": 2e5, "Splitter": 100, "splits": 50}
    limit = {"most Splitter": 900, "most Proportional": 1e4, "most splits": 60}
    return {"figure": figure, "of": of, "at": at, "seed": 0, **usual, **limit, **values}


def rows(**changes: dict[str, float]) -> pd.DataFrame:
    """Return values as in the paper, with some of one row changed."""
    usual: dict[str, dict[str, float]] = {
        "changing": {"Simple": 2.6e6, "Proportional": 3e5, "Splitter": 700},
        "attack": {"splits": 100},
    }  # fmt: skip
    result = []
    growing = {
        5e4: {"Simple": 1.2e7, "Proportional": 4e5, "Splitter": 100.0, "splits": 30.0},
        1e5: {"Simple": 4.4e7, "Proportional": 3.6e6, "Splitter": 420.0, "splits": 30.0},
    }
    for name in NAMES:
        for figure, places in (("window", (5e4, 1e5)), ("period", (1000, 64_000)), ("rows", (1, 8))):
            for at in places:
                splits = {"splits": 160 if at == 1000 else 6} if figure == "period" else {}
                result.append(
                    point(figure, name, at, **growing.get(at, {}) | splits | changes.get(figure, {}))
                )
        for figure, values in (("mu", (0.9, 1.0, 1.5)), ("tau", (0.05, 0.5))):
            for number, at in enumerate(values):
                trend = {"splits": 90.0 - number, "Splitter": 10.0 + number}
                result.append(point(figure, name, at, **trend | changes.get(figure, {})))
    for figure in ("changing", "attack"):
        result.append(point(figure, figure, 0, **usual[figure] | changes.get(figure, {})))
    return pd.DataFrame(result)


def claims(of: pd.DataFrame, **nodes: float) -> list[str]:
    some = pd.DataFrame([{"lacking": 5, "bound": 10, "bits": 7, "most": 7, **nodes}])
    return [text for text in study.verdicts(of, some) if text.startswith("NO")]


def test_false_claims_are_reported() -> None:
    assert claims(rows()) == []
    assert len(claims(rows(window={"Splitter": 3e6}))) == 3
    assert len(claims(rows(window={"splits": 95}))) == 1
    assert len(claims(rows(changing={"Splitter": 1e6, "most Splitter": 900}))) == 2
    assert len(claims(rows(attack={"Simple": 5e3}))) == 2
    assert len(claims(rows(period={"splits": 9}))) == 2
    one = rows()
    one.loc[(one.figure == "period") & (one["at"] == 1000) & (one.of == "Normal"), "Simple"] = 9e5
    assert len(claims(one)) == 1
    assert len(claims(rows(rows={"Simple": 9e4}))) == 2
    assert len(claims(rows(rows={"Proportional": 1e6}))) == 1
    assert len(claims(rows(changing={"most Splitter": 6e3}))) == 1
    assert len(claims(rows(attack={"splits": 1}))) == 1
    # Equal values are no trend.
    assert len(claims(rows(mu={"splits": 9}))) == 1
    assert len(claims(rows(tau={"Splitter": 9.0}))) == 1
    for figure in ("mu", "tau"):
        contrary = rows()
        contrary.loc[contrary.figure == figure, "splits"] *= -1
        assert len(claims(contrary)) == 1
    assert len(claims(rows(), lacking=11)) == 1
    assert len(claims(rows(), bits=8)) == 1


def test_false_claims_are_explained() -> None:
    good, bad, attack = "yes: rows: so", "NO: rows: not so", "NO: attack: not so"
    assert study.why_not([good]) == []
    for output, whys in (
        ([bad, good], [study.WHY]),
        ([good, attack], [study.WHY_OF_ATTACK]),
        ([bad, attack], [study.WHY, study.WHY_OF_ATTACK]),
    ):
        assert study.why_not(output)[1:] == [f"- {why}" for why in whys]


def test_means_exclude_the_outer_tenths() -> None:
    runs = pd.concat([rows().assign(seed=seed) for seed in range(10)])
    runs.loc[(runs.seed == 3) & (runs.figure == "window"), "Splitter"] = 1e9
    assert claims(runs) == []
    runs.loc[(runs.seed == 4) & (runs.figure == "window"), "Splitter"] = 1e9
    assert len(claims(runs)) == 3


def test_each_stream_is_drawn_once() -> None:
    required = list(study.asked(2))
    assert len(required) == len({*required}) == 2 * (5 * (4 + 4 + 4 + 6 + 5) + 2)
    assert window_errors.VARIANTS == study.VARIANTS
