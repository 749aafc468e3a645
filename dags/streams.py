"""One DAG for every sound stream file. Adding a stream adds no code."""

from airflow.sdk import DAG  # noqa: F401  (Airflow looks for DAGs only in files that name it)

from declared import streams
from stream_dag import build

for _file, _stream in streams()[0].items():
    globals()[_stream.name] = build(_stream, _file)
