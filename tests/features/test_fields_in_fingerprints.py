"""Every field of every block changes a fingerprint of its feature, or is listed as one that changes no
row.
"""

import typing
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from transom.features.registry import FEATURES
from transom.spec.base import Model
from transom.spec.feature import Feature
from transom.spec.stream import Stream
from transom.stream import parse

TEXT = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
repair_window: 30 days
aggregates:
  site: {key: [], measures: {n: count, sent: sum(bytes)}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
  traffic: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
frames:
  busy: {source: site, kind: threshold, where: n > 3}
  quiet: {source: site, kind: threshold, where: n > 5}
  served: {kind: threshold, where: status = 200, value: bytes, on_duplicate_time: sum}
"""
LEVELS = "RANGES 3 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES"
FIT = {"levels": "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES", "fit": {"unit": "30 minutes"}}
ALERT = {"alert": {"many": {"when": "n > 12", "level": 0}}}
STEPS = [{"id": "one", "where": "status = 404"}, {"id": "other", "where": "status = 200"}]
THREE = [*STEPS, {"id": "last", "where": "status = 500"}]
UNORDERED = {"any_order": STEPS, "within": "1 hour"}
EXTERNAL = {"table": "/history", "time": "at", "columns": {"loss": {"type": "integer"}}}
EVENTS = {"source": None, "where": "status = 200", "value": "bytes", "on_duplicate_time": "sum"}
ENTERED = "tests.support.some_detectors.entered"
NUMBER = {"type": "number", "resolution": 0.1}
OUTSIDE = {"source": EXTERNAL, "join_on": [], "measures": {"lost": "sum(loss)"}}
BASELINE = {"where": "n > baseline", "baseline": {"value": "n", "shift": ["2 hours"]}}
DELTA = {"kind": "delta", "value": "n", "below": 3, "where": None}
PERIOD = DELTA | {"scheme": "unconstrained", "period": "3 hours"}
AGGREGATE = {"kind": "aggregate", "condition": "sum(n) >= 20", "span": "minimal", "where": None}
MARKED = {
    "kind": "marked", "starts_when": "n > 3", "ends_when": "n < 2", "where": None, "when_open": "report",
}  # fmt: skip
SIGNED = {"who": "ops", "why": "known"}
TABLE = {"ignore": {"table": {"path": "/known"}}}


def step(number: int = 1, **more: Any) -> dict[str, Any]:
    """Return steps of which one has more fields."""
    return {"steps": [of | more if at == number else of for at, of in enumerate(STEPS)]}


def unordered(**more: Any) -> dict[str, Any]:
    """Return the same steps in any order."""
    return {"steps": [UNORDERED | more, THREE[-1]]}


BASES: Mapping[str, Mapping[str, Any]] = {
    "patterns": {"within": "4 hours", "batch": "20 minutes", "steps": STEPS},
    "aggregates": {"measures": {"n": "count", "sent": "sum(bytes)"}, "levels": LEVELS},
    "frames": {"source": "site", "kind": "threshold", "where": "n > 3"},
    "fills": {"frame": "busy", "source": "site", "measures": {"n": "sum(n)"}},
    "persistence": {
        "item": ["client"], "slot": "30 minutes", "window": "3 hours", "alpha": 0.7, "epsilon": 0.6,
    },
    "frequency": {
        "item": ["client"], "window": "2 hours", "tick": "30 minutes", "epsilon": 0.5, "delta": 0.5,
    },
}  # fmt: skip
Change = tuple[Mapping[str, Any], Mapping[str, Any]]
CHANGES: Mapping[str, Mapping[str, Mapping[str, Any] | Change]] = {
    "patterns": {
        "Pattern.key": {"key": ["status"]},
        "Pattern.where": {"where": "bytes > 1"},
        "Pattern.within": {"within": "5 hours"},
        "Pattern.batch": {"batch": "10 minutes"},
        "Pattern.max_records": {"max_records": 7},
        "Pattern.count_records": {"count_records": "all"},
        "Pattern.merge_gap": {"merge_gap": "1 hour"},
        "Pattern.carry": {"carry": ["path"]},
        "Pattern.steps": {"steps": THREE},
        "Pattern.absent": {"absent": [{"where": "status = 500", "between": ["one", "other"]}]},
        "Pattern.detector": (
            {"detector": ENTERED, "steps": None, "columns": ["status"]},
            {"detector": "tests.support.some_detectors.fragile", "steps": None, "columns": ["status"]},
        ),
        "Pattern.columns": (
            {"detector": ENTERED, "steps": None, "columns": ["status"]},
            {"detector": ENTERED, "steps": None, "columns": ["status", "path"]},
        ),
        "Step.id": step(id="another"),
        "Step.where": step(where="status = 201"),
        "Step.times": step(times=2),
        "Step.within": (step(times=2), step(times=2, within="1 hour")),
        "Step.distinct": (step(times=2), step(times=2, distinct="path")),
        "Step.gap": step(gap={"max": "1 hour"}),
        "Step.by": step(by="path"),
        "Gap.min": (step(gap={"max": "1 hour"}), step(gap={"max": "1 hour", "min": "1 minute"})),
        "Gap.max": (step(gap={"max": "1 hour"}), step(gap={"max": "2 hours"})),
        "AnyOrder.any_order": ({"steps": THREE}, unordered()),
        "AnyOrder.within": (unordered(), unordered(within="2 hours")),
        "AnyOrder.gap": (
            {"steps": [THREE[-1], UNORDERED]}, {"steps": [THREE[-1], UNORDERED | {"gap": {"max": "1 hour"}}]},
        ),
        "Absent.where": (
            {"absent": [{"where": "status = 500", "between": ["one", "other"]}]},
            {"absent": [{"where": "status = 501", "between": ["one", "other"]}]},
        ),
        "Absent.between": (
            {"steps": THREE, "absent": [{"where": "status = 301", "between": ["one", "other"]}]},
            {"steps": THREE, "absent": [{"where": "status = 301", "between": ["other", "last"]}]},
        ),
    },
    "aggregates": {
        "Aggregation.key": {"key": ["status"]},
        "Aggregation.where": {"where": "bytes > 1"},
        "Aggregation.measures": {"measures": {"n": "count"}},
        "Aggregation.levels": {"levels": "RANGES 1 HOUR SLIDES 1 HOUR"},
        "Aggregation.fit": {**FIT, "levels": "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES"},
        "Aggregation.aging": (
            {"levels": "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES"},
            {"levels": "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES", "aging": [0.7, 0.3]},
        ),
        "Aggregation.recurring": {"recurring": ["status"]},
        "Aggregation.alert": ALERT,
        "Measure.function": {"measures": {"n": "count", "sent": "max(bytes)"}},
        "Measure.column": {"measures": {"n": "count", "sent": "sum(status)"}},
        "Level.range": {"levels": "RANGES 4 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES"},
        "Level.slide": {"levels": "RANGES 3 HOURS, 1 HOUR SLIDES 1 HOUR, 15 MINUTES"},
        "Fit.unit": (FIT, FIT | {"fit": {"unit": "15 minutes"}}),
        "Fit.value": (FIT, FIT | {"fit": {"unit": "30 minutes", "value": "max"}}),
        "Fit.missing": (FIT, FIT | {"fit": {"unit": "30 minutes", "missing": "zero"}}),
        "Alert.when": (ALERT, {"alert": {"many": {"when": "n > 13", "level": 0}}}),
        "Alert.level": (ALERT, {"alert": {"many": {"when": "n > 12", "level": 1}}}),
    },
    "frames": {
        "Frame.source": (EVENTS, {"source": "site", "where": "n = 200"}),
        "Frame.key": (
            EVENTS,
            EVENTS | {"key": ["path"]},
        ),
        "Frame.only": {"only": "sent > 0"},
        "Frame.kind": (AGGREGATE, DELTA),
        "Frame.where": {"where": "n > 4"},
        "Frame.extent": {"extent": "liberal"},
        "Frame.baseline": BASELINE,
        "Frame.value": {"value": "sent"},
        "Frame.step": (
            {"kind": "boundary", "value": "n", "step": 2, "where": None},
            {"kind": "boundary", "value": "n", "step": 3, "where": None},
        ),
        "Frame.below": (DELTA, DELTA | {"below": 4}),
        "Frame.condition": (AGGREGATE, AGGREGATE | {"condition": "sum(n) >= 21"}),
        "Frame.span": (AGGREGATE, AGGREGATE | {"span": "maximal", "condition": "sum(n) <= 20"}),
        "Frame.direction": (
            {"kind": "trend", "value": "n", "direction": "increasing", "where": None},
            {"kind": "trend", "value": "n", "direction": "decreasing", "where": None},
        ),
        "Frame.starts_when": (
            MARKED,
            MARKED | {"starts_when": "n > 4"},
        ),
        "Frame.ends_when": (
            MARKED,
            MARKED | {"ends_when": "n < 1"},
        ),
        "Frame.when_open": (
            MARKED,
            MARKED | {"when_open": "drop"},
        ),
        "Frame.min_length": {"min_length": "2 hours"},
        "Frame.min_records": {"min_records": 2},
        "Frame.max_length": {"max_length": "5 hours"},
        "Frame.max_records": {"max_records": 9},
        "Frame.missing": {"missing": "bridged"},
        "Frame.known": (
            {"where": "n < 1", "missing": "satisfies"},
            {"where": "n < 1", "missing": "satisfies", "known": "3 hours"},
        ),
        "Frame.idle": {"idle": "2 hours"},
        "Frame.on_duplicate_time": (
            EVENTS,
            EVENTS | {"on_duplicate_time": "max"},
        ),
        "Frame.scheme": (PERIOD | {"scheme": "disjoint", "longest": True}, PERIOD | {"longest": True}),
        "Frame.longest": (PERIOD, PERIOD | {"longest": True}),
        "Frame.period": (PERIOD, PERIOD | {"period": "4 hours"}),
        "Baseline.value": (BASELINE, BASELINE | {"baseline": {"value": "sent", "shift": ["2 hours"]}}),
        "Baseline.shift": (BASELINE, BASELINE | {"baseline": {"value": "n", "shift": ["3 hours"]}}),
        "Baseline.combine": (
            BASELINE, BASELINE | {"baseline": {"value": "n", "shift": ["2 hours"], "combine": "max"}},
        ),
        "Baseline.missing": (
            BASELINE, BASELINE | {"baseline": {"value": "n", "shift": ["2 hours"], "missing": "zero"}},
        ),
    },
    "fills": {
        "Fill.frame": {"frame": "quiet"},
        "Fill.source": OUTSIDE,
        "Fill.join_on": (
            {"frame": "served", "source": "traffic"}, {"frame": "served", "source": "traffic", "join_on": []},
        ),
        "Fill.where": {"where": "n > 3"},
        "Fill.lead": {"lead": "1 hour"},
        "Fill.lag": {"lag": "1 hour"},
        "Fill.shift": {"shift": ["3 hours"]},
        "Fill.combine": (
            {"shift": ["3 hours", "6 hours"], "combine": "median"},
            {"shift": ["3 hours", "6 hours"], "combine": "max"},
        ),
        "Fill.measures": {"measures": {"n": "max(n)"}},
        "Fill.reach": {"reach": "5 hours"},
        "Measure.function": {"measures": {"n": "max(n)"}},
        "Measure.column": {"measures": {"n": "sum(sent)"}},
        "Filler.block": {"source": "events", "measures": {"n": "sum(bytes)"}},
        "Filler.stream": (
            OUTSIDE | {"source": {"stream": "copy", "columns": {"loss": "integer"}}},
            OUTSIDE | {"source": {"stream": "other", "columns": {"loss": "integer"}}},
        ),
        "Filler.table": (OUTSIDE, OUTSIDE | {"source": EXTERNAL | {"table": "/elsewhere"}}),
        "Filler.time": (OUTSIDE, OUTSIDE | {"source": EXTERNAL | {"time": "then"}}),
        "Filler.columns": (OUTSIDE, OUTSIDE | {"source": EXTERNAL | {"columns": {"loss": NUMBER}}}),
        "FillerColumn.type": (
            OUTSIDE, OUTSIDE | {"source": EXTERNAL | {"columns": {"loss": NUMBER}}},
        ),
        "FillerColumn.from": (
            OUTSIDE, OUTSIDE | {"source": EXTERNAL | {"columns": {"loss": {"type": "integer", "from": "x"}}}},
        ),
        "FillerColumn.resolution": (
            OUTSIDE | {"source": EXTERNAL | {"columns": {"loss": NUMBER}}},
            OUTSIDE | {"source": EXTERNAL | {"columns": {"loss": {"type": "number", "resolution": 0.5}}}},
        ),
    },
    "persistence": {
        "Persistence.item": {"item": ["path"]},
        "Persistence.where": {"where": "bytes > 1"},
        "Persistence.slot": {"slot": "15 minutes"},
        "Persistence.window": {"window": "4 hours"},
        "Persistence.alpha": {"alpha": 0.8},
        "Persistence.epsilon": {"epsilon": 0.5},
        "Persistence.budget": {"epsilon": None, "budget": {"tuples": 90, "pairs": 90}},
        "Persistence.delta": {"delta": 0.0001},
        "Persistence.seed": {"seed": 1},
        "Persistence.ignore": {"ignore": {"items": ["10.0.0.1"]}},
        "Persistence.watch": {"watch": ["10.0.0.1"]},
        "Budget.tuples": (
            {"epsilon": None, "budget": {"tuples": 90, "pairs": 90}},
            {"epsilon": None, "budget": {"tuples": 95, "pairs": 90}},
        ),
        "Budget.pairs": (
            {"epsilon": None, "budget": {"tuples": 90, "pairs": 90}},
            {"epsilon": None, "budget": {"tuples": 90, "pairs": 80}},
        ),
        "IgnoreList.items": {"ignore": {"items": ["10.0.0.1"]}},
        "IgnoreList.networks": {"ignore": {"networks": {"client": ["10.0.0.0/8"]}}},
        "IgnoreList.table": TABLE,
        "IgnoreList.until": (
            {"ignore": {"items": ["10.0.0.1"], **SIGNED}},
            {"ignore": {"items": ["10.0.0.1"], **SIGNED, "until": "2015-05-17T10:00"}},
        ),
        "KnownTable.path": (TABLE, {"ignore": {"table": {"path": "/others"}}}),
        "KnownTable.columns": (TABLE, {"ignore": {"table": {"path": "/known", "columns": {"client": "ip"}}}}),
    },
    "frequency": {
        "Frequency.item": {"item": ["path"]},
        "Frequency.where": {"where": "bytes > 1"},
        "Frequency.window": {"window": "3 hours"},
        "Frequency.tick": {"tick": "15 minutes"},
        "Frequency.epsilon": {"epsilon": 0.1},
        "Frequency.delta": {"delta": 0.01},
        "Frequency.variant": {"variant": "simple"},
        "Frequency.start": (
            {"variant": "splitter"}, {"variant": "splitter", "start": "2015-05-17T00:00"},
        ),
        "Frequency.tau": ({"variant": "splitter"}, {"variant": "splitter", "tau": 0.1}),
        "Frequency.mu": ({"variant": "splitter"}, {"variant": "splitter", "mu": 2}),
        "Frequency.seed": {"seed": 1},
        "Frequency.top": {"top": 5},
        "Frequency.min_share": {"min_share": 0.1},
        "Frequency.watch": {"watch": ["10.0.0.1"]},
    },
}  # fmt: skip
"""A change of each field, in the feature's block above or in another one."""
SHAPE_NO_ROW: Mapping[str, frozenset[str]] = {
    "patterns": frozenset({"Pattern.title", "Pattern.severity"}),
    "aggregates": frozenset({"Aggregation.title", "Alert.severity", "Alert.title"}),
    "frames": frozenset({"Frame.title", "Frame.severity", "Frame.finding", "Frame.set"}),
    "fills": frozenset(),
    "persistence": frozenset(
        {
            "Persistence.title",
            "Persistence.severity",
            "Persistence.finding",
            "IgnoreList.who",
            "IgnoreList.why",
        }
    ),
    "frequency": frozenset(
        # The amount of memory changes the speed, not the rows.
        {"Frequency.title", "Frequency.severity", "Frequency.finding", "Frequency.memory"}
    ),
}
"""Fields that change findings or a run's memory, and `set`, which follows from `scheme`."""


def models(of: Any) -> Iterator[type[Model]]:
    """Return the models in an annotation."""
    if isinstance(of, type) and issubclass(of, Model):
        yield of
    for part in typing.get_args(of):
        yield from models(part)


def fields(model: type[Model]) -> dict[str, None]:
    """Return the fields of a model and of the models in it, by class and key."""
    result: dict[str, None] = {}
    for name, info in model.model_fields.items():
        result[f"{model.__name__}.{info.alias or name}"] = None
        for part in models(info.annotation):
            result |= fields(part)
        for extra in info.metadata:
            for part in models(getattr(extra, "annotation", None)):
                result |= fields(part)
    return result


def fingerprints(feature: Feature[Stream], block: Mapping[str, Any]) -> tuple[str, ...]:
    text = yaml.safe_load(TEXT)
    plain = {name: value for name, value in {**BASES[feature.name], **block}.items() if value is not None}
    text[feature.name] = {**text.get(feature.name, {}), "tried": plain}
    stream = parse(text)
    stage = feature.definition(stream)
    return tuple(step.outputs["tried"].spec_fingerprint for step in stage.steps if "tried" in step.outputs)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_each_field_is_changed_here_or_listed(feature: Feature[Stream]) -> None:
    listed = SHAPE_NO_ROW[feature.name]
    assert {*fields(feature.block)} == listed | CHANGES[feature.name].keys()
    assert not listed & CHANGES[feature.name].keys()


@pytest.mark.parametrize(
    ("feature", "field"), [(feature, field) for feature in FEATURES for field in CHANGES[feature.name]],
    ids=lambda value: value if isinstance(value, str) else value.name,
)  # fmt: skip
def test_changed_field_changes_a_fingerprint(feature: Feature[Stream], field: str) -> None:
    change = CHANGES[feature.name][field]
    before, after = change if isinstance(change, tuple) else ({}, change)
    assert fingerprints(feature, before) != fingerprints(feature, after)
