"""Detectors: Python functions of an operator's own that a stream file names by their dotted path."""

import hashlib
import inspect
import re
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from transom.stream.errors import nearest

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
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"{place} of {path} does not import: {said}") from None
    found: Any = getattr(module, name, None)
    if found is None:
        known = [one for one, value in vars(module).items() if inspect.isfunction(value)]
        raise ValueError(f"{place} has no function {name!r}{nearest(name, known)}")
    if not callable(found):
        raise ValueError(f"must be a function; {path} is {_a(found)}")
    detector: Callable[..., Any] = found
    return detector


def source_digest(path: str) -> str:
    """Return a digest of the source of a function's module, and of the one that defines it where that is
    another; what it uses of further modules does not count."""
    found = function(path)
    modules = [import_module(path.rpartition(".")[0]), inspect.getmodule(found)]
    digest = hashlib.sha256()
    for module in dict.fromkeys(modules):
        try:
            digest.update(inspect.getsource(module).encode() if module else b"")
        except (OSError, TypeError):  # built in, or without a file
            digest.update(repr(module).encode())
    return digest.hexdigest()


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
