"""The task `notify`: messages about findings, by notifiers of Airflow."""

import logging
from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from transom.core.locations import lake

if TYPE_CHECKING:
    from transom.alerts.deliver import Send
    from transom.spec.notify import RecipientSpec

LOG = logging.getLogger(__name__)


class Notify(BaseOperator):
    """Sends each finding to the recipients of the stream file: once, and when it ends or is withdrawn.

    It runs also after a failed gate. A recipient that cannot be reached gets its messages from a later run.
    The state of this task does not change the state of the run.
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
        courier = Courier(Ledger(root), stream, str(context["run_id"]))
        for text in unknown_kinds(stream):
            LOG.warning(text)
        lines, problems = [], []
        # The last ones are those that may be down: one that does not answer takes the time of this task.
        for recipient in sorted(recipients(stream), key=courier.has_unsent):
            name = recipient.name
            try:
                send = sender(name, stream.notify[name], context) if name in stream.notify else None
            except ValueError as error:
                LOG.error(str(error))
                problems.append(str(error))
                continue
            result = courier.deliver(recipient, send)
            for text in result.errors:
                LOG.warning("%s: a message was not sent: %s", name, text)
            lines.append(f"{name}: {result}")
            LOG.info(lines[-1])
        if problems:
            raise AirflowFailException("\n".join(problems))
        return lines


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
