"""Rules for every feature, and the results of a feature outside the package."""

import copy
import json
import os
import pickle
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support import toy_feature
from tests.support.memory_pipeline import STREAM
from tests.support.stream_harness import hour, line
from tests.support.toy_feature import ToyStream
from transom.api import Results
from transom.app.pipeline import run_stages
from transom.core.intervals import Interval
from transom.features.registry import FEATURES
from transom.findings.store import findings
from transom.ledger.ledger import Ledger
from transom.spec import loader
from transom.spec.errors import SpecificationError
from transom.spec.feature import Feature
from transom.spec.stream import Stream
from transom.storage.session_on_demand import SessionOnDemand
from transom.storage.tables import Table, read_rows
from transom.stream import parse

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_feature_describes_its_tables_fingerprints_and_checks(feature: Feature[Stream]) -> None:
    stage = feature.definition(STREAM)
    tables = [step.table.name for step in stage.steps]
    assert stage.name == feature.name
    assert tables == list(feature.fingerprints)
    assert {*feature.outlets} <= {*tables}
    keys: set[str] = set()
    for name in STREAM.blocks(feature.block):
        for step in stage.steps:
            if name in step.outputs:
                text = feature.fingerprints[step.table.name](STREAM, name)
                assert step.outputs[name].spec_fingerprint == text
                keys |= json.loads(text).keys()
    assert keys <= feature.labels.keys(), "each has a name that people know"
    optional = {key for of in feature.optional_keys.values() for key in of}
    assert feature.labels.keys() - keys <= optional
    computed = {check.name for step in stage.steps for check in step.checks}
    assert computed <= feature.checks.keys()
    assert {check.stage for check in feature.checks.values()} == {feature.name}


def test_findings_of_a_kind_have_an_order_and_no_other_kind_has() -> None:
    for feature in FEATURES:
        if feature.finding_order is not None:
            assert feature.findings is not None
            assert resolve_name(feature.findings).kind == feature.finding_order.kind


def test_queries_are_methods_of_a_lake(tmp_path: Path) -> None:
    results = Results(str(tmp_path), STREAM)
    queries = {name: of for feature in FEATURES for name, of in feature.queries.items()}
    assert queries.keys() == {"horizon", "horizons", "frequency", "sketch"}
    assert queries.keys() <= {*dir(results)}
    for name, path in queries.items():
        assert getattr(results, name).__doc__ == resolve_name(path).__doc__
    assert copy.copy(results) == pickle.loads(pickle.dumps(results)) == results
    with pytest.raises(AttributeError, match="'Results' object has no attribute 'horizont'"):
        results.horizont  # noqa: B018


def test_every_check_of_a_feature_belongs_to_one_of_its_tables() -> None:
    """Checks of line fits apply if a block has a line fit."""
    for feature in FEATURES:
        computed = {check.name for step in feature.definition(STREAM).steps for check in step.checks}
        assert feature.checks.keys() - computed <= {"lines_exact", "lines_of_two"}


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_name_of_a_key_column_is_refused_if_a_table_of_the_feature_has_it(feature: Feature[Stream]) -> None:
    blocks = {
        "patterns": {"within": "1 hour", "steps": [{"id": "a", "where": "status = 404", "times": 2}]},
        "aggregates": {
            "measures": {"n": "count"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR", "recurring": ["status"],
            "alert": {"many": "n > 3"},
        },
        "frames": {
            "kind": "threshold", "where": "status = 500", "value": "bytes", "on_duplicate_time": "sum",
        },
        "fills": {"frame": "failed", "measures": {"n": "count"}, "reach": "1 hour"},
        "persistence": {"slot": "1 hour", "window": "3 hours", "alpha": 0.7, "epsilon": 0.3},
        "frequency": {
            "window": "3 hours", "tick": "1 hour", "epsilon": 0.1, "delta": 0.1, "variant": "splitter",
        },
    }  # fmt: skip
    of_items = feature.name in ("persistence", "frequency")
    names = {name for table in feature.fingerprints for name in Table.load(table).columns if name[0] != "*"}
    assert names
    for name in sorted(names):
        block = blocks[feature.name] | ({"item": [name]} if of_items else {})
        spec = {
            "name": "web",
            "preset": "apache/combined",
            "source": {"path": "landing/web/%Y-%m-%d/access.%H*.log"},
            "columns": {name: {"is": "client"}},
            "key": [name],
            "frames": {"failed": blocks["frames"]} if feature.name in ("frames", "fills") else {},
        }
        with suppress(SpecificationError):
            feature.definition(parse(spec | {feature.name: {"failed": block}}))


def counting(open_table: Callable[..., None], opened: Counter[str]) -> Callable[..., None]:
    def counted(table: DeltaTable, uri: str, *arguments: Any, **named: Any) -> None:
        opened[uri] += 1
        open_table(table, uri, *arguments, **named)

    return counted


def test_feature_of_the_tests_is_parsed_computed_checked_and_reported(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Block, table, check, finding and gate work without a change of the package."""
    monkeypatch.setenv("TRANSOM_LANDING", str(tmp_path))
    stream = loader.parse(toy_feature.STREAM, ToyStream)
    folder = tmp_path / "landing/toy/2015-05-17"
    folder.mkdir(parents=True)
    quiet = [line(5, "10.0.0.1"), line(6, "10.0.0.1"), line(7, "10.0.0.2"), line(8, "10.0.0.2", status=404)]
    loud = [line(3600 + second, "10.0.0.3") for second in range(4)]
    for number, lines in enumerate((quiet, loud)):
        (folder / f"access.{number:02}.log").write_text("\n".join(lines) + "\n")
    lake = str(tmp_path / "lake")
    ingest, crowds = run_stages(spark, stream, Interval(hour(0), hour(2)), lake=lake, command="run")
    assert (ingest.passed, crowds.passed) == (True, False)
    (failure,) = crowds.failures
    assert "crowds_bounded" in failure
    (row,) = read_rows(DeltaTable(f"{lake}/toy/crowds"))
    assert (row["block"], row["client"], row["events"]) == ("many", "10.0.0.1", 2)
    result = {finding.kind: finding for finding in findings(f"{lake}/toy")}
    assert result["crowd"].title == "toy: a crowd of 10.0.0.1"
    assert "the rule: no crowd has more than three events" in result["check_failed"].evidence

    # Nothing is left to do: no session is needed, and only `ledger` is opened twice: nothing else may use the
    # table of the shared states.
    opened = Counter[str]()
    monkeypatch.setattr(DeltaTable, "__init__", counting(DeltaTable.__init__, opened))
    none = SessionOnDemand(Mock(side_effect=AssertionError("a session was created")))
    again = run_stages(none, stream, Interval(hour(0), hour(2)), lake=lake, command="run")
    assert [gate.passed for gate in again] == [True, False]
    assert {uri for uri, times in opened.items() if times > 1} == {f"{lake}/toy/ledger"}


def test_feature_of_the_tests_is_described_and_validated() -> None:
    stream = loader.parse(toy_feature.STREAM, ToyStream)
    assert stream.stages == ("ingest", "crowds")
    assert stream.blocks(toy_feature.Crowd)["many"].key == ("client",)
    wrong: dict[str, Any] = {**toy_feature.STREAM, "crowds": {"many": {"key": ["clint"], "at_least": 0}}}
    with pytest.raises(SpecificationError) as error:
        loader.parse(wrong, ToyStream)
    assert [issue.path for issue in error.value.problems] == ["crowds.many.at_least"]
    wrong["crowds"]["many"]["at_least"] = 1
    with pytest.raises(
        SpecificationError, match=r"crowds\.many\.key\[0\]: no column 'clint'; nearest: client"
    ):
        loader.parse(wrong, ToyStream)


@pytest.mark.full
def test_job_of_the_feature_runs_under_spark_submit(tmp_path: Path) -> None:
    """An hour without a file is incomplete and has no crowd."""
    (tmp_path / "landing/toy").mkdir(parents=True)
    (tmp_path / "toy.yaml").write_text(yaml.safe_dump(toy_feature.STREAM))
    places = {
        "TRANSOM_LANDING": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]]),
    }
    arguments = [
        "--stream", tmp_path / "toy.yaml", "--lake", tmp_path / "lake",
        "--from", "2015-05-17T00:00", "--to", "2015-05-17T01:00",
    ]  # fmt: skip
    # The job of the package does not know the block of the tests.
    ingest = tmp_path / "ingest.py"
    job = "from transom.app.main import Job"
    ingest.write_text(
        f"{job}\nfrom tests.support.toy_feature import ToyStream\nJob('ingest', None, ToyStream).main()\n"
    )
    for script in (ingest, ROOT / "tests/support/toy_job.py"):
        submit = ["spark-submit", "--properties-file", os.environ["TRANSOM_SPARK_PROPERTIES"], script]
        subprocess.run([*submit, *arguments], check=True, env={**os.environ, **places})
    (run,) = Ledger(f"{tmp_path}/lake/toy").runs("stage = 'crowds'")
    assert run["rows_out"] == 0
