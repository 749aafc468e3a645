"""Command lines for messages. They work in any folder, in a shell with or without transom's environment."""

import glob
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from pathlib import Path

from transom.core.file_names import common_prefix
from transom.core.intervals import HOUR, format_hour
from transom.core.locations import job_script, runtime, spark_server, without_parameters

MAX_LISTED = 3
"""Maximum number of files that a printed command lists by name."""


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


def file_arguments(paths: Sequence[Path]) -> str:
    """Return files as arguments in a shell. Many files become one pattern if it matches no other file."""
    levels = [sorted({*names}) for names in zip(*(path.parts for path in paths), strict=False)]
    if len(paths) > MAX_LISTED and {len(path.parts) for path in paths} == {len(levels)}:
        ends = [_common_ends(names) for names in levels]
        # As in a shell, `*` matches no hidden files.
        pattern = str(Path(*("*".join(map(glob.escape, parts)) for parts in ends)))
        if sorted(glob.glob(pattern)) == sorted(map(str, paths)):  # noqa: PTH207, as `Path.glob` matches hidden files
            return str(Path(*("*".join(map(_quoted, parts)) for parts in ends)))
    return shlex.join(map(str, paths))


def _quoted(text: str) -> str:
    return shlex.quote(text) if text else ""


def _common_ends(names: Sequence[str]) -> Sequence[str]:
    """Return the common begin of several names, and the common end of their rests; a name alone as it is."""
    if len(names) == 1:
        return names
    head = reduce(common_prefix, names)
    return head, reduce(common_prefix, (name[len(head) :][::-1] for name in names))[::-1]
