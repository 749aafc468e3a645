"""One DAG for every sound stream file. Adding a stream adds no code."""

import logging

from airflow.sdk import DAG, get_parsing_context  # noqa: F401  (Airflow looks for DAGs only in files that name it)

from stream_dag import build
from transom.stream_files import names_of, streams

_sound, _wrong = streams()
# In one go: a stream may be called as something here is.
globals().update({stream.name: build(stream, file) for file, stream in _sound.items()})

# A task of a stream whose file is wrong finds no DAG, and is put off: its log says why.
_asked = get_parsing_context().dag_id
for _error in _wrong:
    if _asked in names_of(_error):
        logging.getLogger(__name__).error(
            "stream %s: its file is wrong, and its tasks wait until it is put right: %s", _asked, _error
        )
