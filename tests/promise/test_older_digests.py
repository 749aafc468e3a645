"""A lake whose digests an earlier version of transom has defined otherwise is brought up to date by a run."""

from collections.abc import Callable

import pytest

from tests.app.damaged_lakes import HOURS, STREAM, build
from tests.support.stream_harness import StreamHarness
from transom.app.verify import find
from transom.core import partitions
from transom.storage import digest

Make = Callable[..., StreamHarness]


def build_before(lake: StreamHarness) -> None:
    """Build as with another definition: only the version in the digests differs."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (partitions, digest):
            patch.setattr(module, "DIGEST_VERSION", partitions.DIGEST_VERSION - 1)
        build(lake)


@pytest.mark.full
def test_run_computes_every_hour_again_without_damage(make_stream: Make) -> None:
    lake, new = make_stream(STREAM, "before", ready=build_before), make_stream(STREAM, "new", ready=build)
    events = lake.rows()["events"]
    assert find(lake.spark, lake.stream, lake.root).damages == [], "only numbers of rows are compared"
    (day,) = (lake.folder / "landing/web").iterdir()
    away = day.rename(lake.folder / "away")
    lake.run(0, HOURS)
    assert lake.rows()["events"] == events, "rows stay, as their files are gone"
    away.rename(day)
    lake.run(0, HOURS)
    lake.assert_same(new)
    lake.assert_ledger_true()
    assert all(state.digest_is_current for _, state in lake.snapshot().items())
