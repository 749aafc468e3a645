"""Events and files of an hour, and which files are expected."""

import pytest
import yaml

from tests.support.viewed_lake import SIX, ViewedLake, at
from transom.core.partitions import PartitionState
from transom.features.ingest.expected_inputs import partition_of
from transom.stream import parse
from transom.views.hour import events_text, files_text
from transom.views.open_stream import OpenStream


def opened(lake: ViewedLake, source: dict[str, object], **more: object) -> OpenStream:
    declared = yaml.safe_load(SIX)
    return OpenStream(lake.uri, parse({**declared, "source": declared["source"] | source, **more}))


def test_events_of_an_hour_are_those_of_the_ledger(lake: ViewedLake) -> None:
    lake.publish([1], rows=0)
    lake.publish([2], rows=1)
    lake.enter("ingest", {partition_of("events", at(3)): PartitionState("quarantined", "b", rows=7)}, "b")
    texts = [events_text(opened(lake, {}), at(number)) for number in (0, 1, 2, 3, 9)]
    assert texts == ["10 events", "no event", "1 event", None, None]


@pytest.mark.parametrize(
    ("source", "more", "text"),
    [
        ({}, {}, "2 files came; no file is expected of this stream, so no check finds a missing one"),
        ({"expected_files": 3}, {}, "2 of 3 expected files came"),
        (
            {"expected_files": 3},
            {"start": "2015-05-18T00:00"},
            "2 files came; none is expected, as the hour is outside of the stream's schedule",
        ),
        (
            {"covers": "1 hour"},
            {},
            "2 files came; files are expected for the whole hour, and a check finds missing ones",
        ),
    ],
)
def test_files_of_an_hour_are_next_to_the_expected_ones(
    lake: ViewedLake, source: dict[str, object], more: dict[str, object], text: str
) -> None:
    files = [
        {"hour": at(1), "path": "a", "status": "ingested"},
        {"hour": at(1), "path": "b", "status": "quarantined"},
        {"hour": at(1), "path": "c", "status": "missing"},
        {"hour": at(2), "path": "d", "status": "ingested"},
    ]
    lake.add("files", files)
    assert files_text(opened(lake, source, **more), at(1)) == text


def test_lake_without_a_table_of_files_has_none(lake: ViewedLake) -> None:
    assert files_text(opened(lake, {"expected_files": 1}), at(1)) == "0 of 1 expected file came"
