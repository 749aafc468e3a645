"""The field names in a file's records, for any thread that reads them."""

from collections.abc import Callable
from threading import Thread

import pytest

from transom.formats.parser import LONGEST_NAME, MAX_NAMES, FieldDrift
from transom.formats.record_format import EventTime, Field, RecordFormat

MANY = [f"b{number:05}" for number in range(20 * MAX_NAMES)]


class Slow(str):
    """A name at which another thread interrupts, as far as it is allowed."""

    meanwhile: Callable[[], None]

    def __getitem__(self, part: object) -> str:
        self.meanwhile()
        return str(self)


def test_two_threads_lose_no_names_of_each_other() -> None:
    names = FieldDrift(RecordFormat("json", (Field("client", ("client",)),), EventTime(("ts",))))
    other = Thread(target=names.observe, args=(MANY,))
    first = Slow("a")

    def meanwhile() -> None:
        other.start()
        # Without a lock it passes at once; with one it waits for the first to finish.
        other.join(0.2)

    first.meanwhile = meanwhile
    names.observe([first])
    other.join()
    assert names.unknown == ("a", *MANY[: MAX_NAMES - 1])
    assert names.absent == ("client",)


def test_long_name_is_truncated() -> None:
    names = FieldDrift(RecordFormat("json", (), EventTime(("ts",))))
    names.observe(["x" * (LONGEST_NAME + 1), "ts"])
    assert names.unknown == ("x" * LONGEST_NAME,)


@pytest.mark.parametrize(("nested", "unknown"), [(True, ()), (False, ("id",))])
def test_parents_of_a_path_are_known_where_allowed(nested: bool, unknown: tuple[str, ...]) -> None:
    names = FieldDrift(RecordFormat("json", (Field("host", ("id.orig_h",)),), EventTime(("ts",))), nested)
    names.observe(["id"])
    assert names.unknown == unknown
