"""The session of a run is created once, when it is first needed."""

from unittest.mock import Mock

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
