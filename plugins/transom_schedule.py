"""The schedule of a stream that ends: every hour before `until`.

A DAG with an `end_date` has no tasks in a run with a later logical date. The Trigger form fills in the
present time as the logical date, so such a run ends at once, as a success, and nothing has run. A timetable
that ends leaves the tasks alone.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Self

from airflow.plugins_manager import AirflowPlugin
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable

HOURLY = "0 * * * *"


class HoursUntil(CronDataIntervalTimetable):
    """Every hour that ends by a time.

    Args:
        until: the end of the last hour.
    """

    def __init__(self, until: datetime) -> None:
        super().__init__(HOURLY, timezone="UTC")
        self.until = until.astimezone(UTC)

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Return the next run; None if its hour is not before the end."""
        info = super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )
        return info if info and info.data_interval and info.data_interval.end <= self.until else None

    def serialize(self) -> dict[str, Any]:
        """Return what `deserialize` needs."""
        return {"until": self.until.isoformat()}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Self:
        """Return the timetable of serialized data."""
        return cls(datetime.fromisoformat(data["until"]))


def last_hour(dag: Any) -> datetime | None:
    """Return the last hour that a DAG schedules; None if there is no end."""
    return dag.timetable.until - timedelta(hours=1) if isinstance(dag.timetable, HoursUntil) else None


class TransomSchedule(AirflowPlugin):
    """The plugin: Airflow reads only timetables that one registers."""

    name = "transom_schedule"
    timetables = [HoursUntil]  # noqa: RUF012  (Airflow declares it so)
