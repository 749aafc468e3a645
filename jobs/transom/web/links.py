"""Addresses of the pages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote, urlencode

from transom.core.intervals import Interval, format_hour

KEY = "key."
"""The start of the parameters that are columns of a key: `key.client=10.0.0.1`."""

LONGEST = 8_000
"""The maximum number of characters of a link; servers refuse much longer ones."""


def address(root: str, *segments: object, **parameters: object) -> str:
    """Return an address below a root; parameters that are None are omitted.

    >>> address("/transom", "streams", "a/b", page=2, block=None)
    '/transom/streams/a%2Fb?page=2'
    """
    path = "/".join([root, *(quote(str(segment), safe="") for segment in segments)])
    given = {name: value for name, value in parameters.items() if value is not None}
    # Names of logs may have surrogates, which have no UTF-8.
    return f"{path}?{urlencode(given, errors='replace')}" if given else path


def hours_of(interval: Interval | None) -> dict[str, str]:
    """Return the parameters of an interval; none for the latest hours."""
    if interval is None:
        return {}
    return {"from": format_hour(interval.start), "to": format_hour(interval.end)}


def key_parameters(key: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of a key."""
    return {f"{KEY}{column}": text for column, text in key.items()}


@dataclass(frozen=True)
class Links:
    """Addresses of the pages of a stream.

    Attributes:
        root: the path of the pages.
        airflow: the path of Airflow.
        stream: the name of the stream.
        hours: the parameters `from` and `to` that were given: each link keeps them.
    """

    root: str
    airflow: str
    stream: str
    hours: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *segments: object, **parameters: object) -> str:
        """Return the address of a page of the stream."""
        return address(self.root, "streams", self.stream, *segments, **{**self.hours, **parameters})

    def hour(self, hour: datetime) -> str:
        """Return the address of the page of an hour."""
        return self("hours", format_hour(hour))

    def grid(self, interval: Interval) -> str:
        """Return the address of the grid of an interval."""
        return self("hours", **hours_of(interval))

    def key(self, key: Mapping[str, str], **parameters: object) -> str | None:
        """Return the address of the page of a key; None if it is too long for a server."""
        link = self("key", **key_parameters(key), **parameters)
        return link if len(link) <= LONGEST else None

    def run(self, name: str) -> str:
        """Return the address of the page of a run."""
        return self("runs", name)

    def dag(self, *segments: object) -> str:
        """Return the address of the DAG in Airflow."""
        return address(self.airflow, "dags", self.stream, *segments)
