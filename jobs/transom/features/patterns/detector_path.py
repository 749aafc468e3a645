"""Detectors: Python functions of an operator's own that a stream file names by their dotted path."""

import hashlib
import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from transom.spec.errors import did_you_mean

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+", re.ASCII)


def function(path: str) -> Callable[..., Any]:
    """Return the function that a dotted path names.

    Raises:
        ValueError: it does not import, is not there, or cannot be called; the text names the path and what
            the import said.
    """
    if not _PATH.fullmatch(path):
        raise ValueError(f"must be the path of a function, as package.module.function; got {path!r}")
    place, _, name = path.rpartition(".")
    try:
        module = import_module(place)
    # A module may do anything when it is imported, and one bad one must not end what reads the file.
    except (Exception, SystemExit) as error:
        raise ValueError(f"{place} of {path} does not import: {format_exception(error)}") from None
    found: Any = getattr(module, name, None)
    if found is None:
        known = [one for one, value in vars(module).items() if inspect.isfunction(value)]
        raise ValueError(f"{place} has no function {name!r}{did_you_mean(name, known)}")
    if not callable(found):
        raise ValueError(f"must be a function; {path} is {_a(found)}")
    detector: Callable[..., Any] = found
    return detector


def format_exception(error: BaseException) -> str:
    """Return in a line what somebody else's code has raised, which may not even know how to say so."""
    name = type(error).__name__
    try:
        return " ".join(f"{name}: {error}".split())
    except (Exception, SystemExit) as silent:
        return f"{name}, of which no text can be had: {type(silent).__name__}"


def source_digest(path: str) -> str:
    """Return a digest of the file of a function's module, and of the one that defines it where that is
    another; what it uses of further modules does not count."""
    found = function(path)
    modules = [import_module(path.rpartition(".")[0]), inspect.getmodule(found)]
    digest = hashlib.sha256()
    for module in dict.fromkeys(filter(None, modules)):
        digest.update(_source(module))
    return digest.hexdigest()


def _source(module: ModuleType) -> bytes:
    """A module's file; its name where it has none, for it is built in, or where that is gone."""
    file, loader = getattr(module, "__file__", None), getattr(module, "__loader__", None)
    read = getattr(loader, "get_data", None)
    with suppress(OSError):
        if file and read:
            return bytes(read(file))
    return module.__name__.encode()


def _a(value: object) -> str:
    kind = type(value).__name__
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _imports(path: str) -> str:
    function(path)
    return path


Detector = Annotated[
    str, AfterValidator(_imports), Field(json_schema_extra={"examples": ["package.module.function"]})
]
"""The dotted path of a function that imports."""
