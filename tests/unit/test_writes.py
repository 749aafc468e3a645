"""What a write replaces, without Spark."""

from datetime import UTC, datetime, timedelta

from transom.lake.book import Node
from transom.lake.store import Write
from transom.lake.tables import Table

DAY = datetime(2015, 5, 17, tzinfo=UTC)
TABLE = Table("granules", {}, (), frozenset())


def at(*hours: int) -> list[datetime]:
    return [DAY + timedelta(hours=number) for number in hours]


def known(table: str = "granules", **hours: tuple[int, ...]) -> list[Node]:
    return [Node("aggregate", block, table, hour) for block in hours for hour in at(*hours[block])]


def between(start: int, end: int) -> str:
    return f"((hour >= '2015-05-17T0{start}:00:00Z' AND hour < '2015-05-17T0{end}:00:00Z'))"


def test_an_hour_goes_whole_only_where_no_other_block_has_it() -> None:
    one = Write(TABLE, TABLE.arrow_schema().empty_table(), {"a": at(1, 2, 3), "b": at(2, 3)})
    assert one.predicate(known(a=(1, 2, 3), b=(2, 3))) == between(1, 4)
    assert one.predicate([*known(a=(1, 2), b=(2,)), *known("aggregates", c=(1, 2))]) == between(1, 4)
    by_block = f"(block = 'a' AND {between(1, 4)}) OR (block = 'b' AND {between(2, 4)})"
    assert one.predicate() == by_block
    # Another run has claimed a block that this one does not know; or b has not been made in hour 1.
    assert one.predicate(known(a=(1, 2), b=(2,), c=(2, 9))) == (
        f"((hour >= '2015-05-17T01:00:00Z' AND hour < '2015-05-17T02:00:00Z') OR "
        f"(hour >= '2015-05-17T03:00:00Z' AND hour < '2015-05-17T04:00:00Z')) OR "
        f"(block = 'a' AND {between(2, 3)}) OR (block = 'b' AND {between(2, 3)})"
    )
    assert one.predicate(known(b=(1,))) == f"{between(2, 4)} OR (block = 'a' AND {between(1, 2)})"


def test_a_table_without_blocks_is_replaced_by_the_hour() -> None:
    write = Write(TABLE, TABLE.arrow_schema().empty_table(), {None: at(1)})
    assert write.predicate([Node("ingest", "events", "granules", DAY)]) == between(1, 2)
