"""Read the results of a stream from a lake, for notebooks and dashboards.

web = read("lake", "schemas/streams/web.yaml")
web.table("aggregates", start, end).to_pandas()
web.horizon({"client": "10.0.0.1"}, until, "90 minutes")
web.frequency("pages", "/index.html", until)
"""

from collections.abc import Callable
from datetime import datetime
from os import PathLike, fspath
from pkgutil import resolve_name
from types import MethodType
from typing import Any

import pyarrow as pa

from transom.app.freshness import freshness_of
from transom.app.run_stage import root_of
from transom.core.intervals import Interval
from transom.engine.reader import Reader, StaleDataError, UnknownKey, in_utc
from transom.features.registry import FEATURES, FINDING_ORDER, INGEST_OUTLETS
from transom.findings import store as findings
from transom.findings.from_ledger import Finding
from transom.ledger.freshness import Freshness
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.errors import did_you_mean
from transom.storage.tables import instant
from transom.stream import Stream, load

__all__ = ["RESULTS", "Finding", "Results", "StaleDataError", "UnknownKey", "read"]

RESULTS = (*INGEST_OUTLETS, *(table for feature in FEATURES for table in feature.outlets), "findings")
"""The tables of results. Tables of state are private."""


def read(lake: str | PathLike[str], stream: str | PathLike[str] | Stream) -> "Results":
    """Open the results of a stream in a lake.

    Args:
        lake: the folder or address with the tables of streams.
        stream: the stream, or the path of its file.

    Raises:
        SpecificationError: the file is invalid.
    """
    stream = stream if isinstance(stream, Stream) else load(fspath(stream))
    return Results(root_of(fspath(lake), stream), stream)


class Results(Reader):
    """The results of a stream in a lake.

    The queries of all features are its methods (`spec.feature.Feature.queries`): `dir` lists them, `help`
    describes each.
    """

    def table(self, name: str, start: datetime | None = None, end: datetime | None = None) -> pa.Table:
        """Return the rows of a table for the hours in `[start, end)`, fresh or not (see `transom status`).

        Args:
            name: one of `RESULTS`.
            start: the first hour; None is no bound.
            end: the end of the hours, exclusive; None is no bound.

        Raises:
            KeyError: it is no table of results.
            StaleDataError: no run has written it.
        """
        if name not in RESULTS:
            raise KeyError(f"no table of results {name!r}{did_you_mean(name, RESULTS)}")
        bounds = ((">=", start), ("<", end))
        return self.rows(name, [f"hour {sign} {instant(in_utc(at))}" for sign, at in bounds if at])

    def findings(self, interval: Interval | None = None) -> list[Finding]:
        """Return the findings, the worst first.

        Args:
            interval: only findings that overlap it or belong to no hour; None is all.
        """
        return findings.findings(self.root, interval, order=FINDING_ORDER)

    def freshness(self, snapshot: LedgerSnapshot) -> Freshness:
        """Return which partitions of the stream are fresh."""
        return freshness_of(self.stream, snapshot)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        # Python itself looks up special names, also before `stream` is set.
        for feature in () if name.startswith("__") else self.stream.features:
            if name in feature.queries:
                return MethodType(resolve_name(feature.queries[name]), self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for feature in self.stream.features for name in feature.queries)]
