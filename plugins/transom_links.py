"""Links from Airflow's tasks and forms to the pages of a stream."""

from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink
from airflow.sdk.exceptions import AirflowFailException

from transom.core.intervals import Interval
from transom.web.links import Links, hours_of


def page_address(stream: str, *segments: str, interval: Interval | None = None) -> str:
    """Return the address of a page of a stream, in Airflow's frame for it.

    Args:
        stream: the name of the stream.
        segments: the path of the page below the stream; none for its findings.
        interval: the hours of the page. Default: the latest.
    """
    airflow = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
    # Airflow repeats the path of the page after the route of the view.
    links = Links(f"{airflow}/plugin/transom{airflow}/transom", airflow, stream)
    return links(*segments, **hours_of(interval))


class PageLink(BaseOperatorLink):
    """A link from a task to a page with the hours of its run; also if the task has failed."""

    name = "Findings and hours"

    def __init__(self, *segments: str) -> None:
        self.segments = segments

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the address; `ti_key` is the task instance, as the task runner passes it."""
        from transom_operators import run_interval

        interval = None
        # The log of a run without valid hours has the reason.
        with suppress(AirflowFailException):
            interval = run_interval(ti_key.get_template_context())
        return page_address(operator.stream, *self.segments, interval=interval)


class RunLink(BaseOperatorLink):
    """A link from a task to the page of its run: late files, hours written beyond its request, findings."""

    name = "What changed"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the address; arguments as of `PageLink.get_link`."""
        return page_address(operator.stream, "runs", ti_key.run_id)
