"""The session of a run is created once, when it is first needed."""

import threading
from unittest.mock import Mock

import pytest

from transom.storage.session_on_demand import SessionOnDemand
from transom.storage.store import Store


def test_session_is_created_by_its_first_use() -> None:
    create = Mock()
    on_demand = SessionOnDemand(create)
    one, other = Store(on_demand, "lake"), Store(on_demand, "lake")
    on_demand.stop()
    assert not create.called
    assert one.session_seconds == 0
    assert one.spark is other.spark is create.return_value
    assert create.call_count == 1
    assert other.session_seconds > 0
    on_demand.stop()
    assert create.return_value.stop.call_count == 1


def test_expected_session_is_created_in_the_background_if_later_stages_need_it() -> None:
    began, created = threading.Event(), threading.Event()

    def slow() -> Mock:
        began.set()
        created.wait()
        return Mock()

    create = Mock(side_effect=slow)
    SessionOnDemand(create).expect()
    on_demand = SessionOnDemand(create, ahead=True)
    on_demand.expect()
    on_demand.expect()
    assert began.wait(timeout=10)
    assert on_demand.existing is None
    created.set()
    assert on_demand.get() is on_demand.existing is not None
    assert create.call_count == 1


def test_error_of_an_expected_session_is_raised_where_it_is_needed() -> None:
    on_demand = SessionOnDemand(Mock(side_effect=OSError("no server")), ahead=True)
    on_demand.expect()
    with pytest.raises(OSError, match="no server"):
        on_demand.get()
    on_demand.stop()
