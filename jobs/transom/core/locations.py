"""Locations of the folders and files outside of the package, and of the Spark server of the jobs.

A checkout has `schemas`, `dags` and `jobs`, and keeps Java, jars and settings in `.transom`. An installed
package works in the current folder, and keeps them in the user's data folder.
`TRANSOM_HOME` replaces either folder.
"""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package, with tables, presets and scripts as data."""


def checkout() -> Path | None:
    """Return the checkout that contains this package, or None for an installed package."""
    root = PACKAGE.parents[1]
    return root if (root / "dags" / "stream_dag.py").is_file() else None


def home() -> Path:
    """Return the folder with stream files and the lake: TRANSOM_HOME, the checkout, or the current folder."""
    return Path(os.environ.get("TRANSOM_HOME") or checkout() or Path.cwd()).absolute()


def stream_folder() -> Path:
    """Return the folder of the stream files: TRANSOM_STREAMS, or `schemas/streams`."""
    return Path(os.environ.get("TRANSOM_STREAMS") or (checkout() or home()) / "schemas" / "streams")


def lake() -> str:
    """Return the lake: TRANSOM_LAKE, or a folder of `home`."""
    return os.environ.get("TRANSOM_LAKE") or f"{home()}/.transom/lake"


def runtime() -> Path:
    """Return the folder with Java, jars and Spark's settings, which `transom setup` writes."""
    if os.environ.get("TRANSOM_HOME") or checkout():
        return home() / ".transom"
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "transom"


def job_script(job: str) -> Path:
    """Return the script of a job for spark-submit."""
    installed = checkout() is None and not os.environ.get("TRANSOM_HOME")
    return (PACKAGE / "scripts" if installed else home() / "jobs") / f"{job}.py"


def spark_server() -> str | None:
    """Return the URL of the Spark Connect server that jobs of this environment use: SPARK_REMOTE, as Spark
    calls it. None if each job starts Spark itself."""
    return os.environ.get("SPARK_REMOTE") or None


def without_parameters(url: str) -> str:
    """Return a URL of a server without its parameters, of which one may be a token."""
    return url.partition("/;")[0]
