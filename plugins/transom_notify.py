"""The task `notify`: messages about findings, by notifiers of Airflow."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from transom.core.intervals import HOUR
from transom.core.locations import lake
from transom_note import KEY, high_findings
from transom_operators import run_interval, trigger
from transom_schedule import last_hour

if TYPE_CHECKING:
    from transom.alerts.attempts import Send
    from transom.alerts.comparison import Recipient
    from transom.alerts.deliver import Courier, Result
    from transom.spec.notify import RecipientSpec
    from transom.stream import Stream

LOG = logging.getLogger(__name__)
WAITING = ["null", "scheduled", "queued", "deferred", "up_for_reschedule", "up_for_retry", "restarting"]
"""The states of a task that has not begun; `null` is that of a task whose run has not reached it."""


class Notify(BaseOperator):
    """Sends each finding to the recipients of the stream file: once, and when it ends or is withdrawn.

    It runs also after a failed gate. A recipient that cannot be reached gets its messages from a later run.
    The state of this task does not change the state of the run. High findings are in the note of the run.
    """

    def __init__(self, *, stream: str, stream_file: str, **kwargs: Any) -> None:
        super().__init__(task_id="notify", **kwargs)
        self.stream = stream
        self.stream_file = stream_file

    def execute(self, context: Any) -> list[str]:
        """Send what is due, log a line for each recipient, and return the lines.

        Raises:
            AirflowFailException: a notifier cannot be imported. The other recipients have their messages.
        """
        from deltalake import DeltaTable

        from transom.alerts.deliver import Courier, recipients
        from transom.alerts.notifiers import unknown_kinds
        from transom.ledger.ledger import Ledger
        from transom.stream import load

        stream = load(self.stream_file)
        root = f"{lake()}/{self.stream}"
        # It also runs after a failure of the first task.
        if not DeltaTable.is_deltatable(f"{root}/ledger"):
            LOG.info("%s has never run", self.stream)
            return []
        # The first task fails if the run has no valid interval.
        with suppress(AirflowFailException):
            if note := high_findings(root, run_interval(context)):
                context["ti"].xcom_push(KEY, note)
        is_last = not stream.notify or is_last_run(context, self.task_id, stream.source.arrival_delay)
        courier = Courier(Ledger(root), stream, str(context["run_id"]), is_last)
        for text in unknown_kinds(stream):
            LOG.warning(text)
        senders, problems = dict[str, "Send | None"](), list[str]()
        for name in [recipient.name for recipient in recipients(stream)]:
            try:
                senders[name] = sender(name, stream.notify[name], context) if name in stream.notify else None
            except ValueError as error:
                LOG.error(str(error))
                problems.append(str(error))
        results = deliver(courier, stream, senders)
        lines = [f"{name}: {result}" for name, result in results.items()]
        for line in lines:
            LOG.info(line)
        if problems:
            raise AirflowFailException("\n".join(problems))
        return lines


def deliver(
    courier: "Courier", stream: "Stream", senders: "Mapping[str, Send | None]"
) -> "dict[str, Result]":
    """Send what is due to each recipient, and return the results by its name.

    Recipients that may be down come last. What could not be sent is tried once more after all others.
    """
    from transom.alerts.deliver import recipients

    results: dict[str, Result] = {}

    def send(recipient: "Recipient") -> "Result":
        result = courier.deliver(recipient, senders[recipient.name])
        for text in result.errors:
            LOG.warning("%s: a message was not sent: %s", recipient.name, text)
        return result

    usable = [recipient for recipient in recipients(stream) if recipient.name in senders]
    for recipient in sorted(usable, key=courier.has_unsent):
        results[recipient.name] = send(recipient)
    for recipient in usable:
        if results[recipient.name].pending:
            results[recipient.name].add(send(recipient))
    return results


def is_last_run(context: Any, task_id: str, arrival_delay: timedelta) -> bool:
    """Return whether no other run of the DAG is about to send messages.

    Others are the queued runs of a backfill, and the next run of a schedule that catches up, which Airflow
    creates when this one ends.

    Args:
        context: the context of the task.
        task_id: the id of the task that sends messages.
        arrival_delay: how long runs wait for the files of their hours.
    """
    task, dag, run = context["ti"], context["dag"], context["dag_run"]
    if task.get_ti_count(dag.dag_id, task_ids=[task_id], states=WAITING):
        return False
    following, last = run.data_interval_end, last_hour(dag)
    if not dag.catchup or trigger(run) != "schedule" or (last is not None and following > last):
        return True
    is_due = following + HOUR + arrival_delay <= datetime.now(UTC)
    return not is_due or bool(task.get_dr_count(dag.dag_id, logical_dates=[following]))


def sender(name: str, recipient: "RecipientSpec", context: Mapping[str, Any]) -> "Send":
    """Return a function that sends a message by the notifier of a recipient.

    Raises:
        ValueError: the notifier cannot be imported.
    """
    from transom.alerts.notifiers import notifier_class

    notifier = notifier_class(name, recipient.notifier)

    def send(message: Mapping[str, Any]) -> None:
        # A notifier renders its arguments in place, and adds them to the context. Both are new for each
        # message: text of a log must never be rendered as a template.
        notifier(**deepcopy(recipient.arguments))({**context, "transom": message})

    return send
