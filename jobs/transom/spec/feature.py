"""The interface of a feature: the kernel uses only this, and no feature's name.

`transom.features.registry` lists the features, and `transom.spec.stream.stream_type` makes the type of a
stream's file from the list. Airflow does this every half minute. So functions that need numpy, pyarrow,
pyspark or deltalake are imported when they are called: `lazy("transom.features.frames.stage:definition")`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

from transom.formats.record_format import FieldType
from transom.spec.base import Model
from transom.spec.block_columns import BlockColumns
from transom.spec.checks import BuiltIn
from transom.spec.errors import Issue
from transom.spec.value_domains import Tested

S = TypeVar("S")  # the type of a stream, `transom.spec.stream.Stream`


def lazy(path: str) -> Callable[..., Any]:
    """Return a function that imports `module:function` when it is called, and calls it."""

    return lambda *arguments, **named: resolve_name(path)(*arguments, **named)


@dataclass(frozen=True)
class FindingOrder:
    """Where findings of a kind come among others of the same severity.

    Attributes:
        kind: as in the table `findings`.
        place: the lower one comes first; a kind without an order has `USUAL_PLACE`.
        urgent: a finding of high severity that still goes on comes before all others.
        latest_first: of several the latest comes first, and not the earliest.
    """

    kind: str
    place: int
    urgent: bool = False
    latest_first: bool = False


USUAL_PLACE = 1
"""The place of findings that report a problem; 0 comes before them."""


@dataclass(frozen=True)
class Feature(Generic[S]):
    """One feature.

    Attributes:
        name: the field of the stream's file that declares its blocks, and the stage that computes its tables.
        block: the type of a block.
        meaning: what its blocks are, for editors of stream files.
        noun: the noun for one block.
        rows: the noun for its rows in findings.
        doc: the description of the stage, for its task in Airflow.
        outlets: the tables of results, which are Airflow assets for other DAGs.
        optional_outlets: whether a stream has a table of `outlets`, for those that not every block makes.
        script: the script for spark-submit; None is `jobs/<name>.py`.
        input_table: the table that exists if the stage has run, for stages that read its tables.
        upstream: the stage whose gate has to pass first; a function of the stream.
        inherits: which of the stream's defaults, `key` and `where`, a block takes; a function of the block's
            raw data.
        row_types: the column types of a block's rows, for a stream's own checks of the stage; returns None
            for an invalid block. None itself: streams have no checks of this stage.
        block_problems: the problems of a block by itself; paths are inside it.
        problems: the problems of blocks that are valid by themselves.
        columns_read: the event columns that its blocks need.
        lookback: how far back each block reads state that expires, and a noun for this state.
        fingerprints: for each table, the part of a block that determines its rows, as canonical JSON.
        labels: the names of the fingerprints' keys in the stream's file.
        optional_keys: by table, keys of the fingerprints that are only there if the block has them.
        conditions: its conditions, for the warning about those that no row meets.
        checks: the built-in checks of its tables.
        definition: the stage with the tables of this feature, `ledger.stage.Stage`.
        findings: the path of its `findings.source.FindingSource`, as `module:name`.
        gauges: values that the ledger stores for each run of the stage beside its counters.
        audit: compares what an interval has published with an exact count; of a session, a stream, an
            interval, the folder of the tables and a `ledger.freshness.Freshness`; one result a block.
        counters: the counters of its runs that a person sees if they are not zero: singular and plural.
        finding_order: the rank of its findings among others; None where the kind ranks with all others.
        queries: the methods that `transom.api.Results` gets: the functions, as `module:name`, by the names of
            the methods. The first argument of each is an `engine.reader.Reader`.
        render: prints the first rows of its results for `transom try`, of a stream and its folder.
        summary: one line about a block, for `transom check`.
        facts: one line about a block, for the DAG's page.
    """

    name: str
    block: type[Model]
    meaning: str
    noun: str
    rows: str
    doc: str
    outlets: tuple[str, ...]
    upstream: Callable[[S], str]
    problems: Callable[[S], Iterator[Issue]]
    columns_read: Callable[[S], Iterator[BlockColumns]]
    lookback: Callable[[S], Iterator[tuple[str, timedelta]]]
    definition: Callable[[S], Any]
    fingerprints: Mapping[str, Callable[[S, str], str]]
    labels: Mapping[str, str]
    conditions: Callable[[S], Iterator[Tested]]
    checks: Mapping[str, BuiltIn]
    summary: Callable[[S, str], str]
    facts: Callable[[S, str], str]
    inherits: Callable[[Mapping[str, Any]], frozenset[str]] = lambda block: frozenset(("key", "where"))
    block_problems: Callable[[Any], Iterator[Issue]] = lambda block: iter(())
    optional_outlets: Mapping[str, Callable[[S], bool]] = field(default_factory=dict)
    script: Path | None = None
    input_table: str | None = None
    row_types: Callable[[S, str], Mapping[str, FieldType] | None] | None = None
    optional_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    findings: str | None = None
    gauges: Callable[[S], Mapping[str, int]] = lambda stream: {}
    audit: Callable[..., Iterator[Any]] | None = None
    counters: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    finding_order: FindingOrder | None = None
    queries: Mapping[str, str] = field(default_factory=dict)
    render: Callable[[S, str], None] | None = None
