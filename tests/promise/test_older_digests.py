"""A lake whose digests an earlier version of transom has defined otherwise is brought up to date by a run."""

from collections.abc import Callable

import pytest

from tests.support.every_stage import EVERY_STAGE, requests
from tests.support.stream_harness import StreamHarness, hour
from transom.app.verify import find
from transom.core import partitions
from transom.features.ingest.expected_inputs import partition_of
from transom.storage import digest

Make = Callable[..., StreamHarness]
HOURS = 2


def build(lake: StreamHarness) -> None:
    for number in range(HOURS):
        lake.land(number, requests(number))
    lake.run(0, HOURS)


def build_before(lake: StreamHarness) -> None:
    """Build as with another definition: only the version in the digests differs."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (partitions, digest):
            patch.setattr(module, "DIGEST_VERSION", partitions.DIGEST_VERSION - 1)
        build(lake)


def test_run_computes_every_hour_again_without_damage(make_stream: Make) -> None:
    lake, new = (
        make_stream(EVERY_STAGE, "before", ready=build_before),
        make_stream(EVERY_STAGE, "new", ready=build),
    )
    rows = lake.rows()
    assert find(lake.spark, lake.stream, lake.root).damages == [], "only numbers of rows are compared"
    (lake.folder / "landing").rename(lake.folder / "gone")
    lake.run(0, HOURS)
    assert lake.rows()["events"] == rows["events"], "rows stay, as their files are gone"
    (lake.folder / "gone").rename(lake.folder / "landing")
    lake.run(0, HOURS)
    lake.assert_same(new)
    lake.assert_ledger_true()
    state = lake.snapshot()[partition_of("events", hour(0))]
    assert state.digest_is_current
    assert find(lake.spark, lake.stream, lake.root).damages == []
