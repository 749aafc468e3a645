"""Commands that a person is told to run: they work from any folder, in a shell that is set up or not."""

import os
import shlex
import sys
from pathlib import Path


def checkout() -> Path:
    """The checkout: TRANSOM_HOME, else where this file is."""
    return Path(os.environ.get("TRANSOM_HOME") or Path(__file__).resolve().parents[3]).absolute()


def submit(job: str, stream_file: object, lake: str) -> str:
    """What runs a job by hand, with `{from}` and `{to}`.

    Names what the present process has from its environment: where set-up's is in use it is read first, and
    relative paths of the stream start where they start now.
    """
    settings, landing = os.environ.get("TRANSOM_SPARK_PROPERTIES"), os.environ.get("TRANSOM_LANDING")
    if landing is None and "TRANSOM_HOME" not in os.environ:
        landing = str(Path.cwd())
    set_up = checkout() / ".transom" / "env"
    # A container has an environment of its own, which set-up's would spoil.
    known = "PYSPARK_SUBMIT_ARGS" in os.environ and set_up.is_file()
    first = f". {shlex.quote(str(set_up))} && " if known else ""
    named = f"TRANSOM_LANDING={shlex.quote(absolute(landing))} " if landing else ""
    words = [
        "spark-submit", *(["--properties-file", absolute(settings)] if settings else []),
        f"{checkout()}/jobs/{job}.py", "--stream", absolute(str(stream_file)), "--lake", absolute(lake),
    ]  # fmt: skip
    return f"{first}{named}{shlex.join(words)} --from {{from}} --to {{to}}"


def absolute(place: str) -> str:
    """A path as it is from any folder; a URI as it is."""
    return place if "://" in place else str(Path(place).absolute())


def cli_command(*arguments: object) -> str:
    """A command of the command line, as this process was called: by name, by a path, or as a module."""
    called = os.environ.get("TRANSOM_CALLED") or sys.argv[0]
    if Path(called).name == "__main__.py":
        return shlex.join(["python", "-m", "transom.cli", *map(str, arguments)])
    return shlex.join([called, *map(str, arguments)])
