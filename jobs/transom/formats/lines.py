"""From decompressed bytes to numbered lines: line ends and digests; in blocks of bounded size."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa

from transom.formats.compression import PIECE, Broken, unpacked

BLOCK = 8 * 2**20
"""Decompressed bytes that are parsed at a time."""

LONGEST = 2**20
"""Bytes of the longest line that is parsed; a longer one is refused."""

KEPT = 16 * 2**20
"""Bytes that are kept of a refused line."""


@dataclass
class Tally:
    """What is counted while the bytes go by."""

    known: Sequence[int]
    size: int = 0
    broken: tuple[str, str] | None = None
    prefix_digests: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._digest = hashlib.sha256()
        self._waiting = sorted(set(self.known))

    def see(self, data: bytes) -> None:
        """Counts and digests decompressed bytes."""
        at = 0
        while self._waiting and self._waiting[0] <= self.size + len(data):
            length = self._waiting.pop(0)
            self._digest.update(data[at : length - self.size])
            at = length - self.size
            self.prefix_digests[length] = self._digest.hexdigest()
        self._digest.update(data[at:])
        self.size += len(data)

    @property
    def sha256(self) -> str:
        """The digest of all decompressed bytes so far."""
        return self._digest.hexdigest()


def decompressed(source: BinaryIO, name: str, tally: Tally, largest: int = PIECE) -> Iterator[bytes]:
    """The decompressed bytes of a file, in pieces; what breaks it is noted, not raised.

    Args:
        largest: bytes of the largest piece; nothing else depends on it.
    """
    try:
        for piece in unpacked(source, name, largest):
            tally.see(piece)
            yield piece
    except Broken as broken:
        tally.broken = (broken.kind, f"after {tally.size} decompressed bytes: {broken}")


@dataclass(frozen=True)
class Lines:
    """Whole lines of a block: their bytes without line ends, numbered from `first`."""

    first: int
    text: pa.Array


def blocks(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Bytes cut after a line end about every `size` bytes; the last block may lack its line end."""
    held: list[bytes] = []
    length = 0
    for piece in pieces:
        held.append(piece)
        length += len(piece)
        if length >= size and b"\n" in piece:
            joined = b"".join(held)
            cut = joined.rindex(b"\n") + 1
            yield joined[:cut]
            held, length = [joined[cut:]], len(joined) - cut
    rest = b"".join(held)
    if rest:
        yield rest


def split(block: bytes, first: int) -> Lines:
    """A block's lines, without a loop over them: offsets by numpy, one shared buffer."""
    import numpy as np

    data = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(data == 10)
    if not len(ends) or ends[-1] != len(data) - 1:
        ends = np.append(ends, len(data))
    starts = np.r_[0, ends[:-1] + 1]
    # A line end is one byte, of which the next line's start is one after: offsets cannot share it.
    keep = np.ones(len(data) + 1, dtype=bool)
    keep[ends] = False
    carriage = (ends > starts) & (data[np.maximum(ends - 1, 0)] == 13)
    keep[ends[carriage] - 1] = False
    packed = data[keep[: len(data)]]
    lengths = ends - starts - carriage
    offsets = np.r_[0, np.cumsum(lengths)].astype(np.int64)
    array = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(packed.tobytes())]
    )
    return Lines(first, array)
