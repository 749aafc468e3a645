"""Command lines for messages. They work in any folder, in a shell with or without transom's environment."""

import os
import shlex
import shutil
import sys
from datetime import datetime
from pathlib import Path

from transom.core.intervals import HOUR, format_hour
from transom.core.locations import job_script, runtime, spark_server, without_parameters


def submit(job: str, stream_file: object, lake: str) -> str:
    """Return the command line that runs a job, with `{from}` and `{to}` as placeholders.

    It repeats the environment of this process: the file `env` of set-up if it is in use, the folder that
    relative paths of the stream start from, and the Spark server without its token.
    """
    settings, landing = os.environ.get("TRANSOM_SPARK_PROPERTIES"), os.environ.get("TRANSOM_LANDING")
    if landing is None and "TRANSOM_HOME" not in os.environ:
        landing = str(Path.cwd())
    env_file = runtime() / "env"
    # A container has its own environment, which the one of set-up must not change.
    is_set_up = "PYSPARK_SUBMIT_ARGS" in os.environ and env_file.is_file()
    source = f". {shlex.quote(str(env_file))} && " if is_set_up else ""
    variables = f"TRANSOM_LANDING={shlex.quote(_absolute(landing))} " if landing else ""
    runner = ["spark-submit", *(["--properties-file", _absolute(settings)] if settings else [])]
    if server := spark_server():
        runner = ["python"]
        variables += f"SPARK_REMOTE={shlex.quote(without_parameters(server))} "
    words = [
        *runner, str(job_script(job)), "--stream", _absolute(str(stream_file)), "--lake", _absolute(lake),
    ]  # fmt: skip
    return f"{source}{variables}{shlex.join(words)} --from {{from}} --to {{to}}"


def submit_hours(stream_file: object, lake: str, first: datetime, last: datetime) -> str:
    """Return the command line that runs every stage from one hour to another, inclusive."""
    command = submit("run", stream_file, lake)
    return command.replace("{from}", format_hour(first)).replace("{to}", format_hour(last + HOUR))


def _absolute(location: str) -> str:
    return location if "://" in location else str(Path(location).absolute())


def cli_command(*arguments: object) -> str:
    """Return a command of `transom`, called as this process was: by name, path or module."""
    called = Path(sys.argv[0])
    program = [sys.argv[0]]
    if called.name == "__main__.py":
        program = ["python", "-m", "transom.cli"]
    elif (found := shutil.which(called.name)) and called.exists() and called.samefile(found):
        program = [called.name]
    return shlex.join([*program, *map(str, arguments)])
