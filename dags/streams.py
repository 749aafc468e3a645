"""One DAG for every sound stream file. Adding a stream adds no code."""

from airflow.sdk import DAG  # noqa: F401  (Airflow looks for DAGs only in files that name it)

from stream_dag import build
from transom.stream.folder import streams

# In one go: a stream may be called as something here is.
globals().update({stream.name: build(stream, file) for file, stream in streams()[0].items()})
