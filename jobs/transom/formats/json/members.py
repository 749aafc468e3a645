"""Return the members of JSON objects and the elements of lists as raw text."""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Raw

_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_ELEMENTS = msgspec.json.Decoder(list[Raw])
_HEX = rb"[0-9a-fA-F]{2}"
_HALF = re.compile(rb"(\\u[dD][89abAB]%b\\u[dD][c-fC-F]%b|\\[^u])|\\u[dD][89a-fA-F]%b" % (_HEX, _HEX, _HEX))
"""Matches half a surrogate pair if the first group is empty."""


def members(text: bytes) -> Mapping[str, Raw]:
    """Return the members of an object; of two with the same name the last.

    Half a surrogate pair, which is no character, becomes U+FFFD.

    Raises:
        msgspec.ValidationError: it is valid up to where it is no object.
        msgspec.DecodeError: it is no JSON.
    """
    try:
        return _MEMBERS.decode(text)
    except msgspec.DecodeError:
        return _MEMBERS.decode(_HALF.sub(lambda match: match[1] or rb"\ufffd", text))


def elements(text: bytes) -> list[Raw]:
    """Return the elements of a list that is a part of what `members` has returned."""
    return _ELEMENTS.decode(text)


def top_names(data: bytes) -> frozenset[str]:
    """Return the names at the top of some objects.

    Args:
        data: sound JSON objects, a line each, with an end of line after the last.
    """
    names: set[str] = set()
    for line in data.split(b"\n")[:-1]:
        names.update(members(line))
    return frozenset(names)
