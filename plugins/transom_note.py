"""The note of a run with high findings, which Airflow's grid shows.

A task has no access to the note of its run. So the task `notify` leaves the text as an XCom, and the
scheduler sets the note when the run ends. A note that a person has written stays.
"""

from typing import Any

from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin

from transom.core.intervals import Interval

KEY = "transom_note"
"""The key of the XCom."""
PREFIX = "transom: "
"""The start of each note of this plugin."""
LISTED = 10
"""The maximum number of kinds and blocks in a note."""


def high_findings(root: str, interval: Interval) -> str | None:
    """Return a note about the high findings of an interval; None if there are none.

    Airflow reads notes as Markdown. So it has no text of logs.

    Args:
        root: the stream's folder in the lake.
        interval: the interval.
    """
    from transom.core.terminal import counted
    from transom.findings.store import count_by_block

    counts = count_by_block(root, "high", interval)
    if not counts:
        return None
    texts = [f"{count} {kind}{f' of {block}' if block else ''}" for (kind, block), count in counts.items()]
    rest = f" and {counted(len(texts) - LISTED, 'other kind')}" if len(texts) > LISTED else ""
    number = counted(sum(counts.values()), "high finding")
    return f"{PREFIX}{number}: {', '.join(texts[:LISTED])}{rest}"


class RunNotes:
    """Sets the note of each run of a stream that ends."""

    @hookimpl
    def on_dag_run_success(self, dag_run: Any) -> None:
        """Set the note."""
        set_note(dag_run)

    @hookimpl
    def on_dag_run_failed(self, dag_run: Any) -> None:
        """Set the note."""
        set_note(dag_run)


def set_note(dag_run: Any) -> None:
    """Set the note of a run that the task `notify` has left, or remove the one of an earlier try.

    Args:
        dag_run: the run, in a session of Airflow's database.
    """
    from airflow.models.xcom import XComModel
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    if session is None:
        return
    left = session.get(XComModel, (dag_run.id, "notify", -1, KEY))
    text = left.value if left is not None else None
    before = dag_run.note
    if before and not before.startswith(PREFIX):
        return
    if isinstance(text, str) and text.startswith(PREFIX):
        dag_run.note = text
    elif before:
        dag_run.dag_run_note = None


class TransomNote(AirflowPlugin):
    """The plugin."""

    name = "transom_note"
    listeners = [RunNotes()]  # noqa: RUF012  (Airflow declares it so)
