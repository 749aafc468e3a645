"""Decisions of set-up: which Java, which Python, how much disk, and how Java is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import setup
from transom.installation import install, java
from transom.installation.java import SetupError


def program(folder: Path, text: str) -> Path:
    file = folder / "bin" / "java"
    file.parent.mkdir(parents=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return folder


def versioned(folder: Path, version: str) -> Path:
    return program(folder, f"echo 'openjdk version \"{version}\"' >&2")


def test_launcher_drops_options_that_void_the_archive(tmp_path: Path) -> None:
    home = program(tmp_path / "a home", 'for a do echo "$a"; done')
    launcher = java.launcher(home, tmp_path / "ours")
    arguments = [
        "-cp", "/s p/conf/:/s p/jars/slf4j-api-2.0.17.jar:/s p/jars/*", "-Xmx2g",
        "--add-modules=jdk.incubator.vector", "-Dx=$HOME 'quoted'", "Main", "a b",
    ]  # fmt: skip
    shown = subprocess.run(
        [launcher / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    ).stdout
    assert shown.splitlines() == [
        "-cp", "/s p/conf/:/s p/jars/*", "-Xmx2g", "-Dx=$HOME 'quoted'", "Main", "a b",
    ]  # fmt: skip


def test_first_java_suitable_for_spark_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = versioned(tmp_path / "8", "1.8.0_402"), versioned(tmp_path / "25", "25.0.1")
    good = versioned(tmp_path / "21", "21.0.8")
    ours = java.launcher(good, tmp_path / "ours")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", ":".join(f"{home}/bin" for home in (ours, new, good)) + ":/usr/bin:/bin")
    assert java.found(ours) == good
    monkeypatch.setenv("PATH", f"{ours}/bin:{new}/bin")
    assert java.found(ours) is None


def test_missing_requirement_is_reported_in_one_line() -> None:
    setup.check_python((3, 11))
    with pytest.raises(SetupError, match=r"^Python: needs 3\.11 to 3\.13; this is 3\.10 .*$"):
        setup.check_python((3, 10))
    setup.check_disk(5 * 2**30)
    with pytest.raises(SetupError, match=r"^disk: needs 4 GiB free at .*; there are 1\.0 GiB$"):
        setup.check_disk(2**30)


def test_settings_of_another_checkout_are_left() -> None:
    """`make` in a checkout, in a shell that has loaded the environment of another one."""
    other = {
        "TRANSOM_HOME": "/a/other",
        "PATH": "/a/other/.venv/bin:/usr/bin:/a/others",
        "PYTHONPATH": "/a/other/jobs",
        "PYSPARK_SUBMIT_ARGS": "--properties-file /a/other/.transom/spark.properties pyspark-shell",
        "TZ": "UTC",
    }
    environment = dict(other)
    setup.leave_other_checkout(environment)
    assert environment == {"PATH": "/usr/bin:/a/others", "TZ": "UTC"}
    own = {**other, "TRANSOM_HOME": str(setup.ROOT)}
    environment = dict(own)
    setup.leave_other_checkout(environment)
    assert environment == own


def test_failed_step_names_its_log(tmp_path: Path) -> None:
    failing = "import sys; print('first', flush=True); sys.exit('the reason')"
    with pytest.raises(SetupError, match=r"^a step failed: the reason \(see .*a-step\.log\)$"):
        install.run(tmp_path / "a-step.log", sys.executable, "-c", failing)


def test_uv_is_installed_with_verified_hashes_only() -> None:
    block = setup.uv_requirement(setup.LOCK.read_text())
    assert block.startswith("uv==")
    assert "--hash=sha256:" in block
    assert block.count("==") == 1


@pytest.mark.parametrize("own", [False, True])
def test_command_line_sets_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    (tmp_path / ".transom").mkdir()
    (tmp_path / ".transom" / install.ENVIRONMENT).write_text('{"JAVA_HOME": "/of/setup"}')
    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "/of/a/container")
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    if own:
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    install.load_environment()
    assert os.environ["JAVA_HOME"] == ("/of/a/container" if own else "/of/setup")


def test_modules_of_the_checkout_are_compiled_but_for_one_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    for name in ("jobs", "dags", "plugins"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "good.py").write_text("x = 1\n")
    (tmp_path / "jobs" / "bad.py").write_text("x =\n")
    setup.compile_checkout()
    compiled = [file.parents[1].name for file in tmp_path.rglob("__pycache__/*.pyc")]
    assert sorted(compiled) == ["dags", "jobs", "plugins"]


def test_spark_home_is_linked_again_without_python_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the last one is of packages that are gone, as after an upgrade of Python."""
    monkeypatch.setattr(install, "pyspark_folder", lambda: tmp_path / "gone")
    install.link_spark_home(tmp_path)
    monkeypatch.undo()
    install.link_spark_home(tmp_path)
    home = tmp_path / install.SPARK_HOME
    assert (home / "bin" / "spark-submit").is_file()
    assert list(home.glob("jars/spark-core_*.jar"))
    # The program `pyspark` puts the folder on the path, and starts the script.
    assert (home / "python" / "pyspark" / "shell.py").is_file()
    imported = subprocess.run(
        [sys.executable, "-c", "import pyspark.sql, py4j; print(pyspark.__file__)"],
        env={**os.environ, "PYTHONPATH": str(home / "python")}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert Path(imported.stdout.strip()).parent == install.pyspark_folder()
    assert not (home / "python" / "lib").exists()


def test_class_data_archive_is_made_again_for_other_jars_at_the_same_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an upgrade of pyspark."""
    monkeypatch.setattr(install, "pyspark_folder", lambda: tmp_path)
    (tmp_path / "jars").mkdir()
    first = install.archive_file(tmp_path, [install.CHECKSUMS], "21")
    assert install.archive_file(tmp_path, [install.CHECKSUMS], "21") == first
    # The time of the folder, as if it was filled later.
    os.utime(tmp_path / "jars", (1, 1))
    assert install.archive_file(tmp_path, [install.CHECKSUMS], "21") != first
