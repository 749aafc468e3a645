"""From decompressed bytes to lines: line ends and digests; in blocks of bounded size."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.decompress import CorruptFile, decompress

BLOCK = 8 * 2**20
"""Decompressed bytes that are parsed at a time."""

LONGEST = 2**20
"""Bytes of the longest line that is parsed; a longer one is refused."""

MAX_RAW_BYTES = 16 * 2**20
"""Bytes that are kept of a refused line."""

LINES = 2**17
"""Lines that are parsed at a time: a block has room for millions of empty ones, of hundreds of bytes each."""

LINE_FEED = 10
HOLE = re.compile(rb"(?:\A|(?<=\n))\0+")
"""NUL bytes at the start of a line, where what is searched begins with one."""
HOLE_BEHIND_END = re.compile(rb"(?<=\n)\0+")
"""The same, where it begins inside of a line."""

MARK = b"\xef\xbb\xbf"
"""What a file of UTF-8 may begin with; it belongs to no line."""


@dataclass
class ByteStats:
    """What is counted while the bytes go by."""

    known: Sequence[int]
    size: int = 0
    nul_bytes: int = 0
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


def decompressed(source: BinaryIO, name: str, tally: ByteStats) -> Iterator[bytes]:
    """The decompressed bytes of a file, in pieces; what breaks it is noted, not raised."""
    try:
        for piece in decompress(source, name):
            tally.see(piece)
            yield piece
    except CorruptFile as broken:
        tally.broken = (broken.kind, f"after {tally.size} decompressed bytes: {broken}")


def without_holes(pieces: Iterable[bytes], tally: ByteStats) -> Iterator[bytes]:
    """Yield the pieces of a file without the NUL bytes with which its lines begin, and count these.

    A log that is truncated under its writer begins with a hole of them, and one whose machine lost power
    has some where blocks were never written. They say nothing, and may be longer than any line.

    Args:
        tally: gains their number; a file that holds nothing else is broken.
    """
    at_start = True
    for piece in pieces:
        if b"\0" in piece:
            kept = HOLE.sub(b"", piece) if at_start else HOLE_BEHIND_END.sub(b"", piece)
            tally.nul_bytes += len(piece) - len(kept)
            # Of a piece of NUL bytes alone nothing is left, and the line has still not begun.
            at_start = kept[-1:] == b"\n" if kept else at_start
            piece = kept
        elif piece:
            at_start = piece[-1] == LINE_FEED
        if piece:
            yield piece
    if tally.nul_bytes and tally.nul_bytes == tally.size and tally.broken is None:
        tally.broken = "nul_bytes_only", f"{tally.size} NUL bytes and nothing else; expected lines of text"


@dataclass(frozen=True)
class ByteBlock:
    """Whole lines, of which only the file's last may lack its line end.

    Attributes:
        dropped: bytes missing from the one line of the block, before its last byte; 0 where none is.
    """

    data: bytes
    dropped: int = 0


def blocks(pieces: Iterable[bytes], size: int, kept: int = MAX_RAW_BYTES) -> Iterator[ByteBlock]:
    """Bytes cut after a line end about every `size` bytes, or sooner where the lines are short.

    A line of which more than `kept` bytes have come without an end is let go, but for these and its last
    byte, which may be a carriage return: such a line is a block of its own. So what is held at a time is
    at most `size + kept` and a few pieces, whatever the bytes.

    Args:
        pieces: the bytes, in any pieces.
        size: bytes of a block; the next piece may add to them.
        kept: bytes of a line that are kept at least.
    """
    # The byte order mark of a first line is taken off its block, and is not of the bytes kept.
    most = len(MARK) + kept + 1
    held = bytearray()
    whole = lines = dropped = 0
    for piece in pieces:
        if dropped:
            last, end, piece = piece.partition(b"\n")
            if last:
                dropped += len(last)
                held[-1] = last[-1]
            if not end:
                continue
            block, dropped = ByteBlock(bytes(held + end), dropped), 0
            held.clear()
            yield block
        ends = piece.count(b"\n")
        if ends:
            whole, lines = len(held) + piece.rindex(b"\n") + 1, lines + ends
        held += piece
        too_long = len(held) - whole > most
        if whole and (whole >= size or lines >= LINES or too_long):
            block = ByteBlock(bytes(memoryview(held)[:whole]))
            del held[:whole]
            whole = lines = 0
            yield block
        if too_long:
            dropped = len(held) - most
            held[most - 1] = held[-1]
            del held[most:]
    if held:
        yield ByteBlock(bytes(held), dropped)


@dataclass(frozen=True)
class Lines:
    """Whole lines of a block.

    Attributes:
        text: their bytes without line ends, and without what was dropped.
        lengths: their bytes without line ends, with what was dropped.
    """

    text: pa.Array
    lengths: npt.NDArray[np.int64]


def split(block: ByteBlock) -> Lines:
    """A block's lines, without a loop over them: offsets by numpy, one shared buffer."""
    data = np.frombuffer(block.data, dtype=np.uint8)
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
        pa.large_binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(packed)]
    )
    lengths[-1] += block.dropped
    return Lines(array, lengths)


def joined(lines: pa.Array) -> bytes:
    """Lines without line ends, none of them null, as bytes in which each has one again."""
    # One more line makes the last one's end.
    ended = pa.concat_arrays([lines, pa.array([""])])
    [text] = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(ended)], pa.int32()), ended), "\n")
    data: bytes = text.as_buffer().to_pybytes()
    return data


def some_hold(lines: pa.Array, sign: str) -> bool:
    """Whether any line may hold some characters, far sooner than Arrow tells it of each; never False of one
    that does."""
    _, offsets, data = lines.buffers()
    if data is None:
        return False
    ends = np.frombuffer(offsets, np.int32, len(lines) + 1, lines.offset * 4)
    return sign.encode() in data[ends[0] : ends[-1]].to_pybytes()
