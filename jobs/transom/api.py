"""What stands in a lake, for notebooks and pages: `read(lake, stream)` is the one door.

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
from transom.features.registry import FEATURES, INGEST_OUTLETS
from transom.findings import store as findings
from transom.findings.from_ledger import Finding
from transom.ledger.freshness import Freshness
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.errors import did_you_mean
from transom.storage.tables import instant
from transom.stream import Stream, load

__all__ = ["RESULTS", "Finding", "Results", "StaleDataError", "UnknownKey", "read"]

RESULTS = (*INGEST_OUTLETS, *(table for feature in FEATURES for table in feature.outlets), "findings")
"""The tables that carry a promise of form; those of state are private."""


def read(lake: str | PathLike[str], stream: str | PathLike[str] | Stream) -> "Results":
    """Open what a lake holds of a stream.

    Args:
        lake: the folder or address that holds the tables of streams.
        stream: the stream's file.

    Raises:
        SpecificationError: the file says something that cannot be.
    """
    declared = stream if isinstance(stream, Stream) else load(fspath(stream))
    return Results(root_of(fspath(lake), declared), declared)


class Results(Reader):
    """What a lake holds of a stream.

    It has the queries of all features as methods (`spec.feature.Feature.queries`): `dir` lists them, `help`
    describes each.
    """

    def table(self, name: str, start: datetime | None = None, end: datetime | None = None) -> pa.Table:
        """Return the rows of a table as they stand, of the hours in `[start, end)`.

        Which hours are fresh `transom status` says.

        Raises:
            KeyError: it is no table of results.
            StaleDataError: no run has made it.
        """
        if name not in RESULTS:
            raise KeyError(f"no table of results {name!r}{did_you_mean(name, RESULTS)}")
        bounds = ((">=", start), ("<", end))
        return self.rows(name, [f"hour {sign} {instant(in_utc(at))}" for sign, at in bounds if at])

    def findings(self, interval: Interval | None = None) -> list[Finding]:
        """Return what a person has to know, the worst first.

        Args:
            interval: only what overlaps it, and what belongs to no hour; None is everything.
        """
        return findings.findings(self.root, interval, order=self.stream.finding_order)

    def freshness(self, snapshot: LedgerSnapshot) -> Freshness:
        """Return what of the stream is fresh."""
        return freshness_of(self.stream, snapshot)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        # What Python looks for by itself, before there is a stream, is no query.
        for feature in () if name.startswith("__") else self.stream.features:
            if name in feature.queries:
                return MethodType(resolve_name(feature.queries[name]), self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for feature in self.stream.features for name in feature.queries)]
