"""Custom detectors: Python functions that a stream file names by their dotted path."""

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from transom.spec.errors import did_you_mean

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+", re.ASCII)


class Record(Mapping[str, Any]):
    """A record as a detector gets it: its values by column, including those of the key.

    Two records are equal only if they are the same object.

    Attributes:
        time: the time of the record, in UTC.
    """

    __slots__ = ("_values", "time")

    def __init__(self, time: datetime, values: Mapping[str, Any]) -> None:
        self.time, self._values = time, values

    def __getitem__(self, column: str) -> Any:
        return self._values[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Record({self.time.isoformat()}, {dict(self._values)!r})"

    __eq__ = object.__eq__
    __hash__ = object.__hash__


Detector = Callable[[Sequence[Record]], Iterable[Iterable[Record]]]
"""A function from the records of a window, in their order, to the matches among them, each as its records."""


def matches_in(detector: Detector, records: Sequence[Record]) -> list[tuple[int, ...]]:
    """Return the matches that a detector finds in a window: places of records, ascending, without repeats.

    Raises:
        TypeError: the detector returns something else than an iterable of iterables.
        ValueError: a match is empty, or has a record that the detector did not get.
        Exception: any exception of the detector.
    """
    place_of = {id(record): place for place, record in enumerate(records)}
    matches: dict[tuple[int, ...], None] = {}
    for match in _require_iterable(detector(tuple(records)), "matches"):
        places = set()
        for record in _require_iterable(match, "records of a match"):
            place = place_of.get(id(record))
            if place is None:
                raise ValueError(f"it returned what it was not shown: {record!r:.200}")
            places.add(place)
        if not places:
            raise ValueError("it returned a match without records")
        matches[tuple(sorted(places))] = None
    return list(matches)


def _require_iterable(returned: Any, what: str) -> Iterable[Any]:
    if isinstance(returned, Mapping | str) or not isinstance(returned, Iterable):
        raise TypeError(f"it has to return {what}; it returned {returned!r:.200}")
    return returned


def load_detector(path: str) -> Detector:
    """Return the function with a dotted path.

    Raises:
        ValueError: no such path, a failed import, or no such function; the text has the path and the error
            of the import.
    """
    if not _PATH.fullmatch(path):
        raise ValueError(f"must be the path of a function, as package.module.function; got {path!r}")
    parent, _, name = path.rpartition(".")
    try:
        module = import_module(parent)
    # An import may raise anything, and must not end the process that reads the file.
    except (Exception, SystemExit) as error:
        raise ValueError(f"{parent} of {path} does not import: {format_exception(error)}") from None
    function: Any = getattr(module, name, None)
    if function is None:
        known = [name for name, value in vars(module).items() if inspect.isfunction(value)]
        raise ValueError(f"{parent} has no function {name!r}{did_you_mean(name, known)}")
    if not callable(function):
        kind = type(function).__name__
        raise ValueError(f"must be a function; {path} is {'an' if kind[0] in 'aeiou' else 'a'} {kind}")
    detector: Detector = function
    return detector


def format_exception(error: BaseException) -> str:
    """Return an exception of foreign code as one line, even if its own text raises."""
    name = type(error).__name__
    try:
        return " ".join(f"{name}: {error}".split())
    except (Exception, SystemExit) as raised:
        return f"{name}, of which no text can be had: {type(raised).__name__}"


def format_failure(error: BaseException) -> str:
    """Return a detector's exception as text, with file and line unless `matches_in` itself raised it."""
    *_, last = extract_tb(error.__traceback__)
    own = last.filename == matches_in.__code__.co_filename
    return format_exception(error) + ("" if own else f" ({Path(last.filename).name}, line {last.lineno})")


def source_digest(path: str) -> str:
    """Return a digest of two modules' files: the one that a detector's path names, and the one that defines
    the function. Modules that they import do not count."""
    modules = [inspect.getmodule(load_detector(path)), import_module(path.rpartition(".")[0])]
    digest = hashlib.sha256()
    for module in dict.fromkeys(filter(None, reversed(modules))):
        digest.update(_source(module))
    return digest.hexdigest()


def _source(module: ModuleType) -> bytes:
    """Return the content of a module's file; the module's name if there is none."""
    file, loader = getattr(module, "__file__", None), getattr(module, "__loader__", None)
    read = getattr(loader, "get_data", None)
    with suppress(OSError):
        if file and read:
            return bytes(read(file))
    return module.__name__.encode()


def _validate(path: str) -> str:
    load_detector(path)
    return path


DetectorPath = Annotated[
    str, AfterValidator(_validate), Field(json_schema_extra={"examples": ["package.module.function"]})
]
"""The dotted path of a function that can be imported."""
