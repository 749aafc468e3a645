"""The import of stream files by Airflow, in new processes: what is imported, and how errors are shown."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.dags.dag_runs import ROOT, STREAMS, WEB
from tests.support import sample_streams

BAD = "\npreset: apache/combind\nsource: {path: 'landing/x.log'}\n"
"""The rest of a stream file with a misspelled preset."""


def python(
    code: str, environment: Mapping[str, str] = os.environ, folder: Path | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run code in a new process."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=check)


def printed(process: subprocess.CompletedProcess[str]) -> Any:
    """Return the last printed line, which is JSON. Airflow may print other lines before it."""
    return json.loads(process.stdout.strip().splitlines()[-1])


def dag_bag(of: str, environment: Mapping[str, str], folder: Path) -> Any:
    """Return an attribute of Airflow's collection of the DAGs, which a new process prints."""
    code = (
        "import json, pathlib; from airflow.dag_processing.dagbag import BundleDagBag;"
        f"dags = pathlib.Path({str(ROOT / 'dags')!r});"
        f"print(json.dumps(BundleDagBag(dags, bundle_path=dags).{of}))"
    )
    airflow = {"AIRFLOW_HOME": str(folder), "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins")}
    return printed(python(code, {**environment, **airflow}, folder))


def test_parsing_imports_neither_spark_nor_storage(tmp_path: Path) -> None:
    for file in sample_streams.FILES:
        shutil.copy(file, tmp_path)
    code = (
        "import json, sys, streams, refused; "
        "print(json.dumps([name for name in ('pyspark', 'deltalake') if name in sys.modules]))"
    )
    assert printed(python(code, {**os.environ, "TRANSOM_STREAMS": str(tmp_path)})) == []


def test_airflow_set_up_as_documented_imports_the_dags(tmp_path: Path) -> None:
    guide = (ROOT / "docs/how-to/your-own-airflow.md").read_text()
    assert [folder for folder in ("dags", "plugins", "jobs") if f"- `{folder}` " not in guide] == []
    environment = {name: text for name, text in os.environ.items() if not name.startswith("TRANSOM_")}
    environment["PYTHONPATH"] = str(ROOT / "jobs")
    assert {*STREAMS} <= {*dag_bag("dag_ids", environment, tmp_path)}


def imported(folder: Path) -> tuple[list[str], str]:
    """Return the ids of the DAGs from the stream files of a folder, with the import errors."""
    environment = {**os.environ, "TRANSOM_STREAMS": str(folder)}
    ids = "sorted(dag.dag_id for dag in vars(streams).values() if isinstance(dag, streams.DAG))"
    good, bad = (
        python(code, environment, check=False)
        for code in (f"import json, streams; print(json.dumps({ids}))", "import refused")
    )
    assert not good.returncode, good.stderr
    return printed(good), bad.stderr if bad.returncode else ""


def test_invalid_stream_file_is_shown_and_other_streams_are_imported(tmp_path: Path) -> None:
    shutil.copy(WEB, tmp_path)
    assert imported(tmp_path) == (["web"], "")
    (tmp_path / "bad.yaml").write_text("name: bad" + BAD)
    result, error = imported(tmp_path)
    assert result == ["web"]
    assert f"stream bad: {tmp_path}/bad.yaml: " in error
    assert "apache/combind" in error


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("name: site", "site"),
        ("name: 'site'  # ours", "site"),
        # An invalid name is shown unchanged, and differs from that of another stream.
        ("name: web-site", "web-site"),
        ("name: [web]", "bad"),
        ("name:", "bad"),
        ("{name: web", "bad"),
    ],
)
def test_import_error_names_the_stream(tmp_path: Path, output: str, name: str) -> None:
    from transom.stream_files import names_of, streams

    shutil.copy(WEB, tmp_path)
    (tmp_path / "bad.yaml").write_text(output + BAD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSOM_STREAMS", str(tmp_path))
        (error,) = streams()[1]
    assert names_of(error) == [name]


def test_airflow_lists_an_import_error_under_the_name_of_the_stream(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("name: site" + BAD)
    environment = {**os.environ, "TRANSOM_STREAMS": str(tmp_path)}
    (entry,) = dag_bag("import_errors", environment, tmp_path).values()
    last = entry.strip().splitlines()[-1]
    assert last.startswith(
        f"ValueError: stream site: {tmp_path}/bad.yaml: preset: no preset 'apache/combind'"
    )


def test_task_of_a_stream_with_an_invalid_file_logs_the_error(tmp_path: Path) -> None:
    """A worker that finds no DAG postpones the task. Its log has the parsing error of the file."""
    shutil.copy(WEB, tmp_path)
    (tmp_path / "other.yaml").write_text("name: site" + BAD)
    code = (
        "import logging; logging.basicConfig()\n"
        "from airflow.sdk.definitions._internal import dag_parsing_context as parsing\n"
        "with parsing._airflow_parsing_context_manager({!r}, 'settle'): import streams"
    )
    output = {}
    for requested in ("web", "site"):
        shown = python(code.format(requested), {**os.environ, "TRANSOM_STREAMS": str(tmp_path)})
        output[requested] = shown.stdout + shown.stderr
    assert "its file is wrong" not in output["web"]
    assert "stream site: its file is wrong, and its tasks wait until it is fixed: " in output["site"]
    assert "apache/combind" in output["site"]


def test_task_builds_only_its_own_dag(tmp_path: Path) -> None:
    for file in sample_streams.FILES:
        shutil.copy(file, tmp_path)
    # Its name is known only after it is read.
    (tmp_path / "third.yaml").write_text(json.dumps({"name": "third"}))
    code = (
        "import json, transom.stream_files as files\n"
        "from airflow.sdk.definitions._internal import dag_parsing_context as parsing\n"
        "load, loaded = files.load, []\n"
        "files.load = lambda file: loaded.append(file.stem) or load(file)\n"
        "with parsing._airflow_parsing_context_manager('web', 'settle'): import streams\n"
        "print(json.dumps([loaded, hasattr(streams, 'web')]))"
    )
    environment = {**os.environ, "TRANSOM_STREAMS": str(tmp_path)}
    assert printed(python(code, environment)) == [["third", "web"], True]


def test_files_with_one_stream_name_are_reported_and_none_is_run(tmp_path: Path) -> None:
    for file in sample_streams.FILES:
        shutil.copy(file, tmp_path)
    shutil.copy(WEB, tmp_path / "copy.yaml")
    result, error = imported(tmp_path)
    assert result == ["conn"]
    both = f"{tmp_path}/copy.yaml, {tmp_path}/web.yaml"
    assert f"{both}: name: must be that of one stream alone; got 'web'" in error


def test_stream_may_have_the_name_of_a_symbol_in_the_code(tmp_path: Path) -> None:
    text = WEB.read_text()
    names = ["build", "globals", "streams", "web"]
    for name in names:
        (tmp_path / f"{name}.yaml").write_text(text.replace("name: web", f"name: {name}"))
    assert imported(tmp_path) == (names, "")
