"""A lake of a small model, in the real tables, whose findings are written without Spark.

A file has the number of records of its hour. Consecutive hours with many records are an episode, and its
severity follows from the most records of an hour.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from tests.support.ledger_factories import HOUR, at
from transom.alerts.comparison import Recipient
from transom.alerts.deliver import Courier, Result, Send
from transom.core.intervals import merge_hours
from transom.core.partitions import PartitionKey, PartitionState
from transom.findings import store as findings
from transom.findings.from_ledger import Finding, identity
from transom.ledger.ledger import Ledger
from transom.storage.tables import Table
from transom.stream import Stream, parse

MANY = 10
EVERYTHING = Recipient("ops", summary_after=timedelta(days=2), at_most=20)
START = datetime(2026, 11, 27, tzinfo=UTC)
PATTERN = {
    "steps": [{"id": "one", "where": "status = 404"}, {"id": "two", "where": "status = 200"}],
    "within": "2 hours",
}


def alert_stream(**changes: Any) -> Stream:
    """Return a stream with a pattern."""
    return parse(
        {
            "name": "web",
            "preset": "apache/combined",
            "source": {"path": "landing/%Y-%m-%d/access.%H*.log"},
            "key": ["client"],
            "patterns": {"busy": PATTERN},
            **changes,
        }
    )


class Killed(BaseException):
    """The end of a process."""


class Receiver:
    """Keeps the messages that it gets, and can be down, or be killed after it got one."""

    def __init__(self) -> None:
        self.messages: list[Mapping[str, Any]] = []
        self.is_down = False
        self.kill_after: int | None = None

    def __call__(self, message: Mapping[str, Any]) -> None:
        if self.is_down:
            raise ConnectionError("refused")
        self.messages.append(message)
        if self.kill_after is not None and len(self.messages) >= self.kill_after:
            self.kill_after = None
            raise Killed

    @property
    def rows(self) -> list[tuple[str, str]]:
        """State and finding of everything received, each message once."""
        first = {message["message"]: message for message in self.messages}
        return [(row["state"], row["finding_id"]) for of in first.values() for row in of["findings"]]


class AlertLake:
    """The lake of a stream, with a clock of its own."""

    def __init__(self, root: str, **changes: Any) -> None:
        self.root = root
        self.ledger = Ledger(root)
        self.stream = alert_stream(**changes)
        self.landing: dict[str, tuple[int, int]] = {}
        self.ingested: dict[str, tuple[int, int]] = {}
        self.quarantined: dict[str, tuple[int, int]] = {}
        self.now = START
        self._runs = 0
        self.ledger.create(Table.load("findings"), Table.load("files"))

    def run(self, hours: Iterable[int]) -> None:
        """Ingest and compute some hours; hours that another run has not published are published, too."""
        hours = set(hours)
        of_hours = {path: file for path, file in self.landing.items() if file[0] in hours}
        self.ingested = {p: f for p, f in self.ingested.items() if f[0] not in hours} | of_hours
        schema = Table.load("files").arrow_schema()
        rows = [
            {
                "path": path, "hour": at(hour), "status": "ingested", "source_id": f"{path} {count}",
                "last_read_source_id": f"{path} {count}",
                "first_event": at(hour), "last_event": at(hour) + timedelta(minutes=59),
            }
            for path, (hour, count) in sorted(self.ingested.items())
        ] + [
            {
                "path": path, "hour": at(hour), "status": "quarantined",
                "last_read_source_id": f"{path} {count}",
            }
            for path, (hour, count) in sorted(self.quarantined.items())
        ]  # fmt: skip
        write_deltalake(self.ledger.open("files"), pa.Table.from_pylist(rows, schema), mode="overwrite")
        self.set_states(hours, "published")
        self.sync()

    def set_states(self, hours: Iterable[int], status: Any) -> None:
        """Set the state of some hours of both stages; `writing` claims them."""
        self._runs += 1
        run = f"run {self._runs}"
        for stage, block, table in (("ingest", "events", "events"), ("patterns", "busy", "episodes")):
            keys = [PartitionKey(stage, block, table, at(hour)) for hour in hours]
            self.ledger.claim(stage, keys, run)
            if status != "writing":
                state = PartitionState(status, run, complete=status == "published", reason="r")
                self.ledger.publish(stage, dict.fromkeys(keys, state), run)

    def sync(self, absent: Callable[[Finding], bool] = lambda finding: False) -> None:
        """Write the findings of the ingested files, except some."""
        rows = findings.to_arrow(finding for finding in self.findings() if not absent(finding))
        write_deltalake(self.ledger.open("findings"), rows, mode="overwrite")

    def findings(self) -> list[Finding]:
        """Return the findings of the ingested files."""
        counts: dict[int, int] = {}
        for hour, count in self.ingested.values():
            counts[hour] = counts.get(hour, 0) + count
        last = max((hour for hour, _ in self.ingested.values()), default=0)
        many = merge_hours(at(hour) for hour, count in counts.items() if count >= MANY)
        result = []
        for interval in many:
            most = max(counts[(hour - at(0)) // HOUR] for hour in interval.hours())
            result.append(
                Finding(
                    stage="patterns",
                    hour=interval.end - HOUR,
                    finding_id=identity("web", "patterns", "episode", "busy", "10.0.0.1", interval.start),
                    kind="episode",
                    block="busy",
                    severity="high" if most >= 2 * MANY else "low",
                    title=f"web: busy of 10.0.0.1, {interval.start} to {interval.end}",
                    start_time=interval.start,
                    end_time=interval.end,
                    ongoing=interval.end > at(last),
                    evidence=(),
                    key="10.0.0.1",
                    first_hour=interval.start,
                )
            )
        return result

    def courier(self, run_id: str = "r", **of: Any) -> Courier:
        return Courier(
            Ledger(self.root), self.stream, run_id,
            **{"now": lambda: self.now, "sync": lambda *of: False, **of},
        )  # fmt: skip

    def deliver(self, send: Send, run_id: str = "r", recipient: Recipient = EVERYTHING, **of: Any) -> Result:
        """Deliver what is due, at least an hour after the last time; `of` as of `Courier`."""
        self.now += HOUR
        return self.courier(run_id, **of).deliver(recipient, send)


def picture(messages: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, bool, str | None]]:
    """Return what a receiver knows after its messages: severity, ongoing, and the end of what has ended."""
    known: dict[str, tuple[str, bool, str | None]] = {}
    seen = set()
    for message in messages:
        if message["message"] in seen:
            continue
        seen.add(message["message"])
        for row in message["findings"]:
            if row["state"] == "withdrawn":
                del known[row["finding_id"]]
            else:
                end = None if row["ongoing"] else row["end_time"]
                known[row["finding_id"]] = (row["severity"], row["ongoing"], end)
    return known
