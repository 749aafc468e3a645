"""Raise an import error for wrong stream files; `streams.py` builds the DAGs of valid ones.

The files are separate, as Airflow loads no DAG from a file with an import error.
"""

from airflow.sdk import DAG  # noqa: F401  (Airflow looks for DAGs only in files that name it)

from transom.stream_files import names_of, streams

_wrong = streams()[1]
if _wrong:
    raise ValueError("\n\n".join(f"stream {', '.join(names_of(error))}: {error}" for error in _wrong))
