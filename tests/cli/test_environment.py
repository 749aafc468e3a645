"""Requirements of Spark are checked first: one line for each missing one, with the remedy."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkRuntimeError
from typer.testing import Result

from tests.cli.examples import logs, stream_file

Ask = Callable[..., Result]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with all requirements, named by the environment; Java is 21."""
    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))
    java(tmp_path, "21.0.8")
    (tmp_path / "spark.properties").touch()
    settings = f"--properties-file '{tmp_path}/spark.properties' pyspark-shell"
    for name, value in (("JAVA_HOME", str(tmp_path)), ("PYSPARK_SUBMIT_ARGS", settings)):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    return tmp_path


def java(home: Path, version: str) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)


def refused(run: Ask, checkout: Path) -> str:
    """Return the error of `try` about the environment, before it reads a file."""
    result = run("try", stream_file("trace"), *logs("trace"))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    folder = f"{checkout}/.transom"
    mend = f". `transom setup` brings what is missing into {folder}, and `. {folder}/env` names it\n"
    assert result.stderr.endswith(mend)
    return result.stderr.removeprefix("transom: ").removesuffix(mend)


def test_missing_settings_are_reported(run: Ask, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "spark.properties").unlink()
    assert refused(run, checkout) == f"PYSPARK_SUBMIT_ARGS: there is no {checkout}/spark.properties"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master 'local")
    rule = "PYSPARK_SUBMIT_ARGS: must end with pyspark-shell"
    assert refused(run, checkout) == f'{rule}; got "--master \'local"'
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS")
    assert refused(run, checkout) == "PYSPARK_SUBMIT_ARGS: must hold Spark's settings; it is not set"


def test_missing_or_old_java_is_reported(run: Ask, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"JAVA_HOME: {checkout}/bin"
    for version, major in (("1.8.0_402", "8"), ("11.0.2", "11")):
        java(checkout, version)
        assert refused(run, checkout) == f"{place}: Spark needs Java 17 or 21; {checkout}/bin/java is {major}"
    (checkout / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    assert refused(run, checkout) == f"{place}: {checkout}/bin/java does not run"
    (checkout / "bin" / "java").unlink()
    assert refused(run, checkout) == f"{place}: must hold java, by which Spark runs; there is none"
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(checkout))
    assert refused(run, checkout) == "PATH: must hold java, by which Spark runs; there is none"


def test_missing_python_is_reported(run: Ask, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", f"{checkout}/python")
    assert (
        refused(run, checkout) == f"PYSPARK_PYTHON: must be a Python that can be run; got {checkout}/python"
    )


def test_complete_environment_is_accepted(run: Ask, checkout: Path) -> None:
    result = run("try", stream_file("trace"), checkout / "gone.log")
    assert result.stderr == f"transom: {checkout}/gone.log: there is no such file\n"


def test_failed_start_of_spark_is_reported(run: Ask, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exited(name: str) -> None:
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr("transom.storage.session.session", exited)
    monkeypatch.setattr("transom.engine.evaluate_checks.preload", lambda: None)
    result = run("try", stream_file("trace"), *logs("trace"))
    assert result.exit_code == 2
    text = "transom: Spark does not start: [JAVA_GATEWAY_EXITED] Java gateway process exited"
    assert result.stderr.splitlines()[-1].startswith(text)
