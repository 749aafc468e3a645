"""The names that a file's records show, whichever thread shows them."""

from collections.abc import Callable
from threading import Thread

import pytest

from transom.formats.parser import LONGEST_NAME, MAX_NAMES, FieldDrift
from transom.formats.record_format import EventTime, Field, RecordFormat

MANY = [f"b{number:05}" for number in range(20 * MAX_NAMES)]


class Slow(str):
    """A name at which another thread comes in, as far as it is let in."""

    meanwhile: Callable[[], None]

    def __getitem__(self, part: object) -> str:
        self.meanwhile()
        return str(self)


def test_of_two_threads_neither_loses_what_the_other_shows() -> None:
    names = FieldDrift(RecordFormat("json", (Field("client", ("client",)),), EventTime(("ts",))))
    other = Thread(target=names.observe, args=(MANY,))
    first = Slow("a")

    def meanwhile() -> None:
        other.start()
        # It goes through at once where nothing keeps it out; it is not let in before the first is done.
        other.join(0.2)

    first.meanwhile = meanwhile
    names.observe([first])
    other.join()
    assert names.unknown == ("a", *MANY[: MAX_NAMES - 1])
    assert names.absent == ("client",)


def test_of_a_long_name_the_beginning_is_kept() -> None:
    names = FieldDrift(RecordFormat("json", (), EventTime(("ts",))))
    names.observe(["x" * (LONGEST_NAME + 1), "ts"])
    assert names.unknown == ("x" * LONGEST_NAME,)


@pytest.mark.parametrize(("nested", "unknown"), [(True, ()), (False, ("id",))])
def test_what_a_path_leads_through_is_known_where_it_may(nested: bool, unknown: tuple[str, ...]) -> None:
    names = FieldDrift(RecordFormat("json", (Field("host", ("id.orig_h",)),), EventTime(("ts",))), nested)
    names.observe(["id"])
    assert names.unknown == unknown
