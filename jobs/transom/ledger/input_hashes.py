"""Input hashes of an hour: those recorded in the ledger, and those that a run would record now."""

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import HOUR, UNKNOWN_HOUR
from transom.core.partitions import (
    BITS,
    PartitionKey,
    PartitionState,
    Status,
    TableKey,
    code_version,
    input_hashes_text,
)
from transom.ledger.check import Check
from transom.ledger.hour_arrays import first_in_ranges
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, InputRange, Stage
from transom.ledger.waivers import Waiver

Inputs = Mapping[str, str]
Waivers = Iterable[Waiver]
CHECKS = "checks"
"""The input hash of a quarantined partition that covers the checks of its table."""


def fingerprint(value: object) -> str:
    """Return a short stable hash of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:24]


_spec_hash = cache(fingerprint)


@dataclass(frozen=True)
class TableInputs:
    """The sources of the input hashes of the hours of a block's table.

    Attributes:
        version: the version of the stage's code.
        part: the block's share of the table.
        state: the ranges of earlier tables of its stage that it reads.
        own: the ranges of its own earlier hours that it reads.
        checks: the hash of the table's checks.
        completeness: the hash of what decides whether an hour is complete, for each hour with a waiver; for
            all other hours at `UNKNOWN_HOUR`.
    """

    version: int
    part: BlockOutput
    state: tuple[InputRange, ...]
    own: tuple[InputRange, ...]
    checks: str
    completeness: Mapping[datetime, str]


def table_inputs(stage: Stage, waivers: Sequence[Waiver]) -> Iterator[tuple[TableKey, TableInputs]]:
    """Yield each block's table of a stage with what determines its input hashes."""
    hours = {UNKNOWN_HOUR, *(waiver.hour for waiver in waivers)}
    earlier: set[TableKey] = set()
    for step in stage.steps:
        checks = checks_fingerprint(step.checks, waivers)
        complete = {hour: completeness(stage.name, step.checks, waivers, hour) for hour in hours}
        tables = {(stage.name, block, step.table.name): part for block, part in step.outputs.items()}
        for table, part in tables.items():
            state = tuple(reads for reads in part.reads if reads.series in earlier)
            own = tuple(reads for reads in part.reads if reads.series == table)
            yield table, TableInputs(stage.version, part, state, own, checks, complete)
        earlier.update(tables)


def partitions_read(reads: InputRange, hour: datetime) -> list[PartitionKey]:
    """Return every partition of one table that an hour reads."""
    first, last = reads.span(hour)
    offsets = range((last - first) // HOUR + 1)
    return [PartitionKey(*reads.series, first + offset * HOUR) for offset in offsets]


def slice_hours(hours: Sequence[datetime], hour: datetime, reads: InputRange) -> Sequence[datetime]:
    """Return the hours, out of some ascending ones, that an hour reads."""
    first, last = reads.span(hour)
    return hours[bisect_left(hours, first) : bisect_right(hours, last)]


def incomplete_hours(reads: Iterable[InputRange], hour: datetime, snapshot: LedgerSnapshot) -> set[datetime]:
    """Return the incomplete hours that an hour reads."""
    return {
        incomplete
        for read in reads
        for incomplete in slice_hours(snapshot.incomplete(*read.series), hour, read)
    }


def checks_fingerprint(checks: Iterable[Check], waivers: Waivers) -> str:
    """Return a hash of a table's checks.

    They are no input of its rows: a change makes only quarantined hours stale.
    """
    return fingerprint([repr(checks), repr(waivers)])


def completeness(stage: str, checks: Iterable[Check], waivers: Waivers, hour: datetime | None) -> str:
    """Return a hash of what decides, apart from its rows, whether an hour is complete.

    Rows of later stages may depend on it.

    Args:
        stage: the name of the stage.
        checks: the checks of the table.
        waivers: the waivers of the stream.
        hour: the hour; None for hours without a waiver.
    """
    deciding = [check for check in checks if check.severity == "incomplete"]
    names = {check.name for check in deciding}
    waived = [item for item in waivers if (item.stage, item.hour) == (stage, hour) and item.check in names]
    return fingerprint([repr(deciding), repr(waived)])


def expected_inputs(
    part: BlockOutput,
    version: int,
    hour: datetime,
    snapshot: LedgerSnapshot,
    completeness: str,
    table: str | None = None,
) -> dict[str, str]:
    """Return a hash for each input of an hour of a block.

    An hour that was not requested counts as empty. The hash of a required hour that is not computed equals no
    other.

    Args:
        part: the block's share of the table.
        version: the version of the stage's code.
        hour: the hour.
        snapshot: the ledger of the stage and its inputs.
        completeness: the hash from `completeness`.
        table: the block's own table, if it may read earlier hours of it.
    """
    contents: dict[str, int] = {}
    for reads in part.reads:
        own = reads.table == table
        of_reads = snapshot.range_hash(reads.series, *reads.span(hour), own, reads.requested)
        contents[reads.table] = (contents.get(reads.table, 0) + of_reads) % 2**BITS
    hashes = {name: format_hash(number) for name, number in contents.items()}
    return named_inputs(hashes, part.fingerprint_of(hour), version, completeness)


def named_inputs(hashes: Inputs, shape: str, version: int, completeness: str) -> dict[str, str]:
    """Return all input hashes of an hour by name.

    Args:
        hashes: the hashes of the tables that it reads, by table.
        shape: the part of the specification that shapes its rows.
        version: as of `expected_inputs`.
        completeness: as of `expected_inputs`.
    """
    own = {"specification": _spec_hash(shape), "version": code_version(version), "completeness": completeness}
    return {**hashes, **own}


def expected_texts(
    hashes: Mapping[str, pa.Array],
    part: BlockOutput,
    version: int,
    completeness: str,
    hours: Sequence[datetime],
) -> pa.Array:
    """Return all input hashes of many hours, each as the text of the ledger.

    Args:
        hashes: the hashes of the tables that the hours read, by table: an array with a text for each hour.
        part: as of `expected_inputs`.
        version: as of `expected_inputs`.
        completeness: as of `expected_inputs`.
        hours: the hours.
    """
    columns = dict(hashes)
    if part.before_ends:
        specifications = [_spec_hash(part.fingerprint_of(hour)) for hour in hours]
        columns["specification"] = pa.array(specifications, pa.string())
    marks = {name: f"<{place}>" for place, name in enumerate(columns)}
    own = named_inputs({}, part.spec_fingerprint, version, completeness)
    text, parts = input_hashes_text({**own, **marks}), list[Any]()
    if not columns:
        return pa.array([text] * len(hours), pa.string())
    for name in sorted(columns):
        before, _, text = text.partition(marks[name])
        parts += [before, columns[name]]
    return pc.binary_join_element_wise(*parts, text, "")


def other_texts(recorded: tuple[Int64s, pa.Array], hours: Int64s, expected: pa.Array) -> Bools:
    """Return which hours have other input hashes than the expected ones, or none.

    Args:
        recorded: hours, each once, and the recorded input hashes of each as text.
        hours: the hours since the epoch, ascending.
        expected: the expected input hashes of each hour as text.
    """
    known, texts = recorded
    order = np.argsort(known)
    inside, places = first_in_ranges(known[order], hours, hours)
    chosen = order[places[inside]]
    same = pc.equal(texts.take(pa.array(chosen)), expected.filter(pa.array(inside))).fill_null(False)
    differs = ~inside
    differs[inside] = ~same.to_numpy(zero_copy_only=False)
    return differs


def is_defined_as(part: BlockOutput, version: int, hour: datetime, inputs: Mapping[str, str]) -> bool:
    """Return whether input hashes of an hour have this specification of a block and this version of the
    code."""
    defined = (_spec_hash(part.fingerprint_of(hour)), code_version(version))
    return (inputs.get("specification"), inputs.get("version")) == defined


def format_hash(contents: int) -> str:
    """Return a hash as text, as in the ledger."""
    return f"{contents:032x}"


def recorded_inputs(status: Status, inputs: Mapping[str, str], checks: str) -> dict[str, str]:
    """Return the input hashes of a partition as the ledger records them.

    Those of a quarantined partition contain its checks: it is computed again when they change.

    Args:
        status: the status of the partition.
        inputs: the input hashes of its rows.
        checks: the hash of the checks of its table (`checks_fingerprint`).
    """
    return {**inputs, CHECKS: checks} if status == "quarantined" else dict(inputs)


def is_stale(state: PartitionState, inputs: Mapping[str, str], checks: str) -> bool:
    """Return whether a partition's recorded input hashes differ from the expected ones.

    Args:
        state: the state of the partition.
        inputs: as of `recorded_inputs`.
        checks: as of `recorded_inputs`.
    """
    if state.status in ("writing", "blocked", "damaged"):
        return True
    return state.input_hashes != recorded_inputs(state.status, inputs, checks)
