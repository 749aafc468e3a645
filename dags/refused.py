"""Shows wrong stream files as an import error of this file; the DAGs of valid ones are in streams.py.

Airflow loads no DAG of a file with an import error, so the two are separate.
"""

from airflow.sdk import DAG  # noqa: F401  (Airflow looks for DAGs only in files that name it)

from transom.stream_files import names_of, streams

_wrong = streams()[1]
if _wrong:
    raise ValueError("\n\n".join(f"stream {', '.join(names_of(error))}: {error}" for error in _wrong))
