"""Split decompressed bytes into lines, in blocks of bounded size; decode the lines; compute digests."""

import hashlib
import re
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.decompress import CorruptFile, decompress
from transom.formats.rejections import Int64s, Rejections, mask, null_where

BLOCK = 8 * 2**20
"""Decompressed bytes after which a block ends."""

LONGEST = 2**20
"""Maximum number of bytes of a line; a longer line is refused."""

MAX_RAW_BYTES = 16 * 2**20
"""Maximum number of stored bytes of a refused line."""

LINES = 2**17
"""Lines after which a block ends: millions of empty lines would fit, which take hundreds of bytes each."""

NUL_AT_START = re.compile(rb"(?:\A|(?<=\n))\0+")
"""NUL bytes at the start of a line, in a text that begins with a line."""
NUL_AFTER_LINE_END = re.compile(rb"(?<=\n)\0+")
"""The same in a text that begins inside a line."""
NO_NUL = "text, which has no NUL bytes inside of a line"

MARK = b"\xef\xbb\xbf"
"""The byte order mark of a UTF-8 file; it belongs to no line."""


@dataclass
class ByteStats:
    """Counters and digests of the bytes of a file.

    Attributes:
        known: the lengths of the prefixes to digest, in bytes.
        size: the number of decompressed bytes so far.
        nul_bytes: the number of removed NUL bytes.
        broken: the kind and the message of a break; None if there is none.
        prefix_digests: the digest of each prefix, by length.
    """

    known: Sequence[int]
    size: int = 0
    nul_bytes: int = 0
    broken: tuple[str, str] | None = None
    prefix_digests: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._digest = hashlib.sha256()
        self._waiting = sorted(set(self.known))

    def update(self, data: bytes) -> None:
        """Count and digest decompressed bytes."""
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


def decompressed(source: BinaryIO, name: str, stats: ByteStats) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file; record a break in `stats` instead of raising it."""
    try:
        for piece in decompress(source, name):
            stats.update(piece)
            yield piece
    except CorruptFile as broken:
        stats.broken = (broken.kind, f"after {stats.size} decompressed bytes: {broken}")


def without_nul_bytes(pieces: Iterable[bytes], stats: ByteStats) -> Iterator[bytes]:
    """Yield the pieces of a file without the NUL bytes with which its lines begin, and count these.

    A log that is truncated while it is written begins with such bytes. A log of a machine that lost power has
    them where blocks were not written. They contain nothing and may be longer than any line.

    Args:
        pieces: the decompressed bytes.
        stats: receives the number of NUL bytes; a file with nothing else is broken.
    """
    at_start = True
    for piece in pieces:
        if b"\0" in piece:
            size = len(piece)
            piece = (NUL_AT_START if at_start else NUL_AFTER_LINE_END).sub(b"", piece)
            stats.nul_bytes += size - len(piece)
        # After a piece of NUL bytes only, the line has not begun yet.
        if piece:
            at_start = piece.endswith(b"\n")
            yield piece
    if stats.nul_bytes and stats.nul_bytes == stats.size and stats.broken is None:
        stats.broken = "nul_bytes_only", f"{stats.size} NUL bytes and nothing else; expected lines of text"


@dataclass(frozen=True)
class ByteBlock:
    """Whole lines; only the last line of the file may lack its line end.

    Attributes:
        data: the bytes.
        dropped: the number of bytes missing from the only line of the block, before its last byte.
    """

    data: bytes
    dropped: int = 0


def blocks(pieces: Iterable[bytes], size: int, max_raw: int = MAX_RAW_BYTES) -> Iterator[ByteBlock]:
    """Yield blocks, cut after a line end about every `size` bytes, or earlier if the lines are short.

    A line with more than `max_raw` bytes is a block of its own. Its first `max_raw` bytes stay, and its last
    one, which may be a carriage return; the others are dropped. So the buffer has at most `size + max_raw`
    bytes and a few pieces.

    Args:
        pieces: the bytes, in any pieces.
        size: bytes of a block, without the last piece.
        max_raw: bytes of a long line to keep.
    """
    # The byte order mark of the first line is removed later and does not count.
    limit = len(MARK) + max_raw + 1
    buffer = bytearray()
    whole = lines = dropped = 0
    for piece in pieces:
        if dropped:
            last, end, piece = piece.partition(b"\n")
            if last:
                dropped += len(last)
                buffer[-1] = last[-1]
            if not end:
                continue
            block, dropped = ByteBlock(bytes(buffer + end), dropped), 0
            buffer.clear()
            yield block
        ends = piece.count(b"\n")
        if ends:
            whole, lines = len(buffer) + piece.rindex(b"\n") + 1, lines + ends
        buffer += piece
        too_long = len(buffer) - whole > limit
        if whole and (whole >= size or lines >= LINES or too_long):
            block = ByteBlock(bytes(memoryview(buffer)[:whole]))
            del buffer[:whole]
            whole = lines = 0
            yield block
        if too_long:
            dropped = len(buffer) - limit
            buffer[limit - 1] = buffer[-1]
            del buffer[limit:]
    if buffer:
        yield ByteBlock(bytes(buffer), dropped)


def read_blocks(source: BinaryIO, name: str, stats: ByteStats, size: int) -> Iterator[ByteBlock]:
    """Yield the blocks of a file, without its byte order mark and without NUL bytes before lines."""
    for number, block in enumerate(blocks(without_nul_bytes(decompressed(source, name, stats), stats), size)):
        yield block if number else replace(block, data=block.data.removeprefix(MARK))


def split(block: ByteBlock) -> tuple[pa.Array, Int64s]:
    """Return the lines of a block, as bytes without line ends, and their lengths, with dropped bytes.

    >>> lines, lengths = split(ByteBlock(b"first\\r\\nlast"))
    >>> lines.to_pylist(), lengths.tolist()
    ([b'first', b'last'], [5, 4])
    """
    data = block.data
    # Without a copy of the bytes.
    ends = np.array([0, len(data) - data.endswith(b"\n")])
    text = pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(ends), pa.py_buffer(data)])
    lines = pc.split_pattern(text, "\n").values
    if b"\r" in data:
        lines = pc.if_else(pc.ends_with(lines, "\r"), pc.binary_slice(lines, 0, -1), lines)
    lengths = np.array(pc.binary_length(lines))
    lengths[-1] += block.dropped
    return lines, lengths


def join_lines(lines: pa.Array) -> bytes:
    """Join lines, none of them null, to bytes with a line end after each.

    >>> join_lines(pa.array(["first", "last"]))
    b'first\\nlast\\n'
    """
    # An additional empty line gives the last one its end.
    ended = pa.concat_arrays([lines, pa.array([""])])
    data: bytes = joined(ended).to_pybytes()
    return data


def joined(lines: pa.Array) -> pa.Buffer:
    """Join lines, none of them null and at least one, with line ends between them."""
    [text] = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines), "\n")
    return text.as_buffer()


def any_contains(lines: pa.Array, characters: str) -> bool:
    """Return whether any line may contain some characters; never False if one does. This is much faster than
    Arrow's check of each line."""
    _, offsets, data = lines.buffers()
    if data is None:
        return False
    ends = np.frombuffer(offsets, np.int32, len(lines) + 1, lines.offset * 4)
    letters, searched = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]], characters.encode()
    # Most texts lack even the first byte; only a search for more needs a copy.
    if not all((letters == byte).any() for byte in searched[:1]):
        return False
    return len(searched) == 1 or searched in letters.tobytes()


@dataclass(frozen=True)
class Text:
    """Lines, or records in place of lines.

    Attributes:
        strings: the texts; null for lines that are refused before parsing.
        raw: the bytes to store if a line is refused.
        refused: the lines that are refused before parsing.
    """

    strings: pa.Array
    raw: pa.Array
    refused: Rejections


def decode(block: ByteBlock, longest: int = LONGEST) -> Text:
    """Return the lines of a block as strings, null for a line that has more than `longest` bytes, has NUL
    bytes or is not UTF-8. Refuse these and empty lines."""
    text, lengths = split(block)
    refused = Rejections.none(len(text))
    refused.add(lengths == 0, "empty")
    long = lengths > longest
    refused.add(long, "line_too_long", values=pa.array(lengths), expected=f"at most {longest} bytes")
    strings = _utf8((null_where(long, text) if long.any() else text).cast(pa.binary()), refused)
    if b"\0" in block.data:
        has_nul = mask(pc.match_substring(text, b"\0"))
        refused.add(has_nul, "nul_byte", expected=NO_NUL)
        strings = null_where(has_nul, strings)
    return Text(strings, text, refused)


def _utf8(text: pa.Array, refused: Rejections) -> pa.Array:
    """Return bytes as strings, null where they are not UTF-8; these lines are refused."""
    try:
        return text.cast(pa.string())
    except pa.ArrowInvalid:
        pass
    decoded: list[str | None] = []
    broken = np.zeros(len(text), dtype=bool)
    for index, line in enumerate(text.to_pylist()):
        try:
            decoded.append(None if line is None else line.decode())
        except UnicodeDecodeError:
            decoded.append(None)
            broken[index] = True
    refused.add(broken, "not_utf8")
    return pa.array(decoded, pa.string())


def raw_text(line: bytes) -> bytes:
    r"""Return the text of a refused line in UTF-8; bytes that are not UTF-8 become \xNN.

    >>> raw_text(b"caf\xe9")
    b'caf\\xe9'
    """
    # In parts, to save memory: an invalid byte takes four characters, and one rare character makes each
    # character of a Python text take four bytes.
    decoder = getincrementaldecoder("utf-8")("backslashreplace")
    text = bytearray()
    for start in range(0, len(line[:MAX_RAW_BYTES]), LONGEST):
        text += decoder.decode(line[start : min(start + LONGEST, MAX_RAW_BYTES)]).encode()
    return bytes(text + decoder.decode(b"", final=True).encode())
