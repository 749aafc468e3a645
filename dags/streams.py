"""Build one DAG for each valid stream file. A new stream needs no code."""

import logging

from airflow.sdk import DAG, get_parsing_context  # noqa: F401  (Airflow looks for DAGs only in files that name it)

from stream_dag import build
from transom.stream_files import names_of, streams

# A task needs only its own DAG, and each other stream file would take time to validate.
_dag_id = get_parsing_context().dag_id
_sound, _wrong = streams(_dag_id)
# In one call, as a stream may be named as a variable of this module.
globals().update({stream.name: build(stream, file) for file, stream in _sound.items()})

# Airflow finds no DAG for a task of a wrong stream file, and postpones the task. Log the reason.
for _error in _wrong:
    if _dag_id in names_of(_error):
        logging.getLogger(__name__).error(
            "stream %s: its file is wrong, and its tasks wait until it is fixed: %s", _dag_id, _error
        )
