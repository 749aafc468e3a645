"""The names at the top of JSON objects, found in a whole block at once.

In sound JSON a quote that no backslash escapes begins or ends a text, by turns. A text that a colon
follows is a name, and it is at the top where one bracket is open before it.
"""

import json
import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

QUOTE, COLON, BACKSLASH = ord('"'), ord(":"), b"\\"
OPENING, CLOSING = 0x5B, 0x5D
"""The square brackets; the curly ones differ from them in one bit, `CURLY`."""
CURLY = 0x20
BLANKS = np.frombuffer(b" \t\r\n", dtype=np.uint8)
ESCAPED = re.compile(rb"\\.", re.DOTALL)
SURROGATE = re.compile("[\ud800-\udfff]")

Places = npt.NDArray[np.int64]


def top_names(data: bytes) -> frozenset[str]:
    """The names at the top of some objects.

    Args:
        data: sound JSON objects, a line each, with an end of line after the last.
    """
    # Of the same length, so that places stay what they are.
    plain = ESCAPED.sub(b"__", data) if BACKSLASH in data else data
    letters = np.frombuffer(plain, dtype=np.uint8)
    quotes = np.flatnonzero(letters == QUOTE)
    starts, ends = quotes[0::2] + 1, quotes[1::2]
    named = _next(letters, ends) == COLON
    starts, ends = starts[named], ends[named]
    if plain.count(b"{") + plain.count(b"[") > plain.count(b"\n"):
        top = _depth(letters, quotes, starts) == 1
        starts, ends = starts[top], ends[top]
    return frozenset(map(_name, _distinct(data, starts, ends)))


def _next(letters: npt.NDArray[np.uint8], places: Places) -> npt.NDArray[np.uint8]:
    """The letter after each place that is not blank."""
    after = letters[places + 1]
    if np.isin(after, BLANKS).any():
        filled = np.flatnonzero(~np.isin(letters, BLANKS))
        # After the last text there is a bracket at least.
        after = letters[filled[np.searchsorted(filled, places, side="right")]]
    return after


def _depth(letters: npt.NDArray[np.uint8], quotes: Places, places: Places) -> Places:
    """How many brackets are open at each place."""
    square = letters & ~np.uint8(CURLY)
    brackets = np.flatnonzero((square == OPENING) | (square == CLOSING))
    outside = np.searchsorted(quotes, brackets) % 2 == 0
    brackets = brackets[outside]
    depth = np.cumsum(np.where(square[brackets] == OPENING, 1, -1))
    return depth[np.searchsorted(brackets, places) - 1]


def _distinct(data: bytes, starts: Places, ends: Places) -> list[bytes]:
    if not len(starts):
        return []
    # Every other value of these offsets is a name; the others are what stands between two of them.
    offsets = np.column_stack((starts, ends)).ravel()
    texts = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    return list(pc.unique(texts.take(pa.array(np.arange(0, len(offsets) - 1, 2)))).to_pylist())


def _name(written: bytes) -> str:
    name = json.loads(b'"' + written + b'"') if BACKSLASH in written else written.decode()
    return SURROGATE.sub("\ufffd", name)
