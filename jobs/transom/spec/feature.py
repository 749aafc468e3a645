"""The interface of a feature. The kernel uses only this, and no feature's name.

`transom.features.registry` lists the features, and `transom.spec.stream.stream_type` makes the type of a
stream file from the list. Airflow does this every half minute. So functions that need numpy, pyarrow,
pyspark or deltalake are imported when they are called: `lazy("transom.features.frames.stage:definition")`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
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
    """The rank of findings of a kind among others of the same severity.

    Attributes:
        kind: the kind, as in the table `findings`.
        place: the rank, lowest first; a kind without an order has `USUAL_PLACE`.
        urgent: whether findings of high severity that still continue come before all others.
        latest_first: whether later findings of the kind come before earlier ones.
    """

    kind: str
    place: int
    urgent: bool = False
    latest_first: bool = False


@dataclass(frozen=True)
class FindingMeaning(Generic[S]):
    """The meaning of the times and numbers of a feature's findings: functions of the stream and the block.

    Attributes:
        window: the length of the windows whose ends are the times of a finding; None if the times are those
            of its records.
        covered: the time that the last record of a finding covers; None if this is not known.
        growth: how long after its end a finding may still grow; None if this is not known.
        unit: what the bounds of its number count.
        evidence: a line of its evidence as pages show it. Its other arguments are the line, and how exact the
            finding is.
        picture: the chart of a line of its evidence, as a `charts.section.Section`; None if it has none. Its
            other arguments are the line and the end of the finding.
    """

    window: Callable[[S, str], timedelta | None] = lambda stream, name: None
    covered: Callable[[S, str], timedelta | None] = lambda stream, name: None
    growth: Callable[[S, str], timedelta | None] = lambda stream, name: None
    unit: Callable[[S, str], str] = lambda stream, name: "records"
    evidence: Callable[[S, str, str, str], str] = lambda stream, name, line, exactness: line
    picture: Callable[[S, str, str, datetime], Any] = lambda stream, name, line, end: None


USUAL_PLACE = 1
"""The place of findings that report a problem; 0 comes before them."""


@dataclass(frozen=True)
class Feature(Generic[S]):
    """One feature.

    Attributes:
        name: the field of the stream file with its blocks, and the stage that computes its tables.
        block: the type of a block.
        meaning: the description of the field in the JSON Schema.
        noun: the noun for one block.
        rows: the noun for its rows in findings.
        doc: the description of the stage, for its task in Airflow.
        outlets: the tables of results, which are Airflow assets for other DAGs.
        optional_outlets: by table of `outlets` that not every block writes, whether a stream has it.
        script: the script for spark-submit; None is `jobs/<name>.py`.
        input_table: the table that exists if the stage has run, for stages that read its tables.
        upstream: the stage whose gate must pass first; a function of the stream.
        inherits: which of the stream's defaults, `key` and `where`, a block takes; a function of the block's
            raw data.
        row_types: the column types of a block's rows, for own checks of the stage; returns None for an
            invalid block. If it is None itself, the stage has no own checks.
        block_problems: the problems of one block; paths are relative to it.
        problems: the other problems of blocks, if no block has problems by itself.
        columns_read: the event columns that its blocks need.
        lookback: a noun for the state that each block reads and that expires, and how far back it reads.
        fingerprints: for each table, the part of a block that determines its rows, as canonical JSON.
        labels: the names in the stream file of the fingerprints' keys.
        optional_keys: by table, the keys of fingerprints that blocks without the option omit.
        conditions: its conditions, for the warning about those that no row meets.
        checks: the built-in checks of its tables.
        definition: the stage with the tables of this feature, `ledger.stage.Stage`.
        findings: the path of its `findings.source.FindingSource`, as `module:name`.
        subject: the columns whose values the rows and findings of a block are about: its key or item.
        gauges: values that the ledger stores for each run of the stage, in addition to its counters.
        audit: compares the published rows of an interval with an exact count; yields one result per block.
            Its arguments: session, stream, interval, folder of the tables, `ledger.freshness.Freshness`.
        counters: the counters of its runs that are printed if they are not zero: singular and plural.
        finding_order: the rank of its findings among others; None is the usual rank.
        finding_meaning: what the times and numbers of its findings mean.
        queries: the methods that `transom.api.Results` gets: the functions, as `module:name`, by the names of
            the methods. The first argument of each is an `engine.reader.Reader`.
        render: prints the first rows of its results for `transom try`; of the stream and its folder.
        view: the section of a block on the stream's page, `charts.section.Section`; of an
            `engine.selection.Selection` and the name of the block.
        of_key: the section of a block on the page of a key, in addition to `view`; of an
            `engine.reader.Reader`, the block, the values of the key, and an interval. None if the block has
            another key.
        part_of: the feature and block on whose page the section of a block is, too; None if there is none.
        records: the records of a finding, lines by source; of an `engine.selection.Selection`, the
            block, start and end of the finding, and the maximum number. None: those of its key.
        last_report: of a finding of an item that has left: the last report with its count, with `window_end`,
            `low` and `high`; of an `engine.selection.Selection`, the block, and the start of the finding.
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
    subject: Callable[[S, str], tuple[str, ...]] = lambda stream, name: ()
    gauges: Callable[[S], Mapping[str, int]] = lambda stream: {}
    audit: Callable[..., Iterator[Any]] | None = None
    counters: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    finding_order: FindingOrder | None = None
    finding_meaning: FindingMeaning[S] = field(default_factory=FindingMeaning)
    queries: Mapping[str, str] = field(default_factory=dict)
    render: Callable[[S, str], None] | None = None
    view: Callable[[Any, str], Any] | None = None
    of_key: Callable[[Any, str, Mapping[str, Any], Any], Any] | None = None
    part_of: Callable[[S, str], tuple[str, str] | None] = lambda stream, name: None
    records: Callable[..., Mapping[str, list[int]]] | None = None
    last_report: Callable[..., Mapping[str, Any] | None] | None = None
