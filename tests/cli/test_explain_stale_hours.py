"""Why an hour is stale: changed rows, blocks and rules, and the hours that it is computed from."""

from dataclasses import replace

import pytest

from tests.cli.explained_hours import OTHERWISE, Ask, command, explanation
from tests.cli.ledger_by_hand import WEB, Lake, at
from transom.core.partitions import code_version
from transom.features.aggregates.stage import VERSION
from transom.features.ingest.expected_inputs import partition_of


def test_changed_rows_are_named_with_their_hours(run: Ask, lake: Lake) -> None:
    lake.ingest(range(4))
    lake.aggregate(range(4))
    lake.ingest([1], "c", 2, digest="2:9")
    assert explanation(run, lake, "2015-05-17T01:00")[1:-2] == [
        "  aggregates traffic, granules: published, stale, 1 row, by run b, 2015-05-20 12:01",
        "    the events of 2015-05-17T01:00 have changed since it was computed from them",
        "  aggregates traffic, aggregates: published, stale, 1 row, by run b, 2015-05-20 12:01",
        "    the granules that it is computed from are stale",
    ]


def test_changed_specification_or_version_is_named(
    run: Ask, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.ingest(range(2))
    lake.aggregate(range(2))
    lake.file.write_text(WEB.replace("n: count", "m: count"))
    monkeypatch.setattr("transom.features.aggregates.stage.VERSION", 99)
    lines = explanation(run, lake, "2015-05-17T01:00")
    assert lines[2:4] == [
        f"    {OTHERWISE}: `key`, `where`, `measures`, the finest step of `levels` or the type or resolution "
        "of a column",
        "    a later version of transom computes it differently: "
        f"version {code_version(VERSION)} then, {code_version(99)} now",
    ]
    assert lines[-2:] == ["  to run it:", command(lake, "2015-05-17T01:00", "2015-05-17T02:00")]


@pytest.mark.parametrize(
    ("old", "new", "granules", "aggregates"),
    [
        (
            "n: count}",
            "n: count}\n    where: status = 200",
            "`where`, the finest step of `levels` or the type or resolution of a column",
            None,
        ),
        (
            "2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR",
            "2 HOURS SLIDES 1 HOUR",
            None,
            "`levels`, `fit`, `aging` or the type or resolution of a column",
        ),
    ],
)
def test_changed_block_names_changed_fields_and_its_aggregates_are_stale(
    run: Ask, lake: Lake, old: str, new: str, granules: str | None, aggregates: str | None
) -> None:
    lake.ingest(range(2))
    lake.aggregate(range(2))
    lake.file.write_text(WEB.replace(old, new))
    by = "1 row, by run b, 2015-05-20 12:01"
    stale = "published, stale" if granules else "published"
    state = "the granules of 2015-05-17T00:00 to 2015-05-17T02:00 that it is computed from are stale"
    reason = f"{OTHERWISE}: {aggregates}" if aggregates else state
    assert explanation(run, lake, "2015-05-17T01:00")[1:-2] == [
        f"  aggregates traffic, granules: {stale}, {by}",
        *([f"    {OTHERWISE}: {granules}"] if granules else []),
        f"  aggregates traffic, aggregates: published, stale, {by}",
        f"    {reason}",
    ]


def test_changed_rules_of_reading_files_are_named(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    lake.file.write_text(WEB + "extra_fields: keep\n")
    assert explanation(run, lake, "2015-05-17T00:00")[1] == (
        f"    {OTHERWISE}: `source.format`, `source.options`, the captures of `source.path`, the time in "
        "`source.path`, `zone` or `event_time_range`, `columns`, `time`, `extra_fields`, `unique` or a check "
        "or a waiver that decides whether files are complete"
    )


def test_missing_input_of_a_window_is_named(run: Ask, lake: Lake) -> None:
    lake.ingest([1])
    lake.aggregate([1])
    lake.ingest([0], "c", 2)
    assert explanation(run, lake, "2015-05-17T01:00")[3:-2] == [
        "    the granules of 2015-05-17T00:00, which it reads, have not been computed"
    ]


def test_block_added_later_is_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    lake.aggregate(range(1))
    lake.file.write_text(WEB + "  more: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}\n")
    stale = "stale: the block was added after the hour was computed"
    assert explanation(run, lake, "2015-05-17T00:00")[2:] == [
        f"  aggregates more, granules: {stale}",
        "  aggregates traffic, aggregates: published, 1 row, by run b, 2015-05-20 12:01",
        f"  aggregates more, aggregates: {stale}",
        "  to run it:",
        command(lake, "2015-05-17T00:00", "2015-05-17T01:00"),
    ]


def test_hour_of_several_specifications_is_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(2))
    node = partition_of("events", at(1))
    lake.run("a", "ingest", {node: replace(lake.ledger.snapshot()[node], input_hashes=None)})
    assert explanation(run, lake, "2015-05-17T01:00")[:2] == [
        "  ingest events: published, stale, 1 row, by run a, 2015-05-20 12:00",
        "    its inputs are unknown: rows of several specifications, or of a killed run",
    ]


def test_block_that_reads_other_hours_is_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(2))
    lake.aggregate(range(2))
    lake.file.write_text(WEB.replace("RANGES 2", "RANGES 3"))
    assert explanation(run, lake, "2015-05-17T01:00")[3] == (
        f"    {OTHERWISE}: `levels`, `fit`, `aging` or the type or resolution of a column"
    )


def test_hours_computed_from_stale_hours_are_stale_with_the_reason(run: Ask, lake: Lake) -> None:
    """The events must be read again; the aggregates match the published events."""
    lake.ingest(range(3))
    lake.aggregate(range(3))
    lake.file.write_text(WEB + "extra_fields: keep\n")
    lines = run("explain", "web", "2015-05-17T01:00").stdout.splitlines()
    (at_granules,) = [number for number, line in enumerate(lines) if ", granules: " in line]
    assert lines[at_granules].startswith("  aggregates traffic, granules: published, stale, ")
    assert lines[at_granules + 1] == (
        "    computed from what is stale in turn: ingest events (events) of 2015-05-17T01:00 is out of date"
    )


def test_hours_computed_from_damaged_hours_are_stale_because_of_them(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    lake.aggregate(range(3))
    lake.mark(partition_of("events", at(1)))
    result = run("explain", "web", "2015-05-17T02:00")
    assert result.exit_code == 1
    why = "computed from what is stale in turn: ingest events (events) of 2015-05-17T01:00 is damaged"
    assert f"    {why}" in result.stdout.splitlines()
