"""From stored bytes to the bytes that were compressed: gzip and zstd, up to the very byte that breaks them.

Decompressors give nothing of a call that fails, not even what they had decompressed before they met the
break. So a gzip member is copied before each call, and where a call fails, the break is closed in on from
that copy; a zstd frame is given block by block, the least that can be decompressed at all. What comes out
follows from the stored bytes alone, not from the pieces in which they are read; and it comes in pieces of
bounded size, however far the stored bytes expand.
"""

import zlib
from collections.abc import Iterator
from typing import BinaryIO

import zstandard

READ = 2**20
"""Stored bytes that are asked for at a time: a remote store wants few requests."""

PIECE = 2**18
"""Decompressed bytes of the largest piece."""

STEP = 2**16
"""Stored bytes that gzip is given at a time: what a member leaves over is copied, member by member."""

WINDOW = 2**27
"""Bytes that a zstd frame may look back, and so hold in memory: what the `zstd` command allows by itself."""

MAGIC = b"\x28\xb5\x2f\xfd"
SKIPPED = b"\x2a\x4d\x18"
"""Begins, after one byte 0x50 to 0x5f, a zstd frame that holds no content."""

REPEATED = 1
"""The type of a zstd block that is one byte, given once."""


class Broken(Exception):
    """The file cannot be read on from here.

    Attributes:
        kind: `truncated` where the file ends too early, `corrupt` where it holds what cannot be.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def unpacked(source: BinaryIO, name: str, largest: int = PIECE) -> Iterator[bytes]:
    """The decompressed bytes of a file.

    Args:
        source: the stored bytes; a read may give fewer than it was asked for.
        name: its ending says how the bytes are compressed (.gz, .zst), any other that they are not.
        largest: bytes of the largest piece, at least 1; the bytes in all do not depend on it. A zstd
            block comes whole, and has up to 128 KiB.

    Raises:
        Broken: when all that can be read before the break has been given.
        OSError: the source cannot be read; says nothing of what it holds.
    """
    if name.endswith(".gz"):
        return _gzip(_pieces(source, STEP), largest)
    if name.endswith(".zst"):
        return _zstd(_Stored(_pieces(source, READ)))
    return _pieces(source, largest)


def _pieces(source: BinaryIO, largest: int) -> Iterator[bytes]:
    while data := source.read(READ):
        for start in range(0, len(data), largest):
            yield data[start : start + largest]


def _gzip(stored: Iterator[bytes], largest: int) -> Iterator[bytes]:
    """Any number of members, one after the other; zero bytes around them are padding."""
    member = zlib.decompressobj(wbits=31)
    inside = begun = False
    for data in stored:
        begun, more = True, False
        while data or more:
            if not inside:
                data = data.lstrip(b"\0")
                if not data:
                    break
                member, inside = zlib.decompressobj(wbits=31), True
            before = member.copy()
            try:
                piece = member.decompress(data, largest)
            except zlib.error as error:
                yield from _before_break(before, data)
                raise Broken("corrupt", str(error)) from None
            if piece:
                yield piece
            if member.eof:
                data, inside, more = member.unused_data, False, False
            else:
                # A full piece may have left some behind, even of stored bytes that are all taken.
                data, more = member.unconsumed_tail, len(piece) == largest
    if inside or not begun:
        raise Broken("truncated", "the stream ends inside a gzip member")


def _before_break(member: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    """What a member gives of stored bytes that break it: all but at most its last byte.

    That one is lost where the break lies in the same stored byte as the code that means it: zlib reads
    on through a byte that it has begun.
    """
    # By halves to the stored byte that breaks it...
    step = len(data)
    while step:
        further = member.copy()
        try:
            piece = further.decompress(data[:step])
        except zlib.error:
            step //= 2
            continue
        yield piece
        member, data = further, data[step:]
    # ...which may hold several codes: one decompressed byte after the other, those that wait first.
    for tail in (b"", data[:1]):
        while True:
            try:
                piece = member.decompress(tail, 1)
            except zlib.error:
                return
            if not piece:
                break
            yield piece
            tail = member.unconsumed_tail


class _Stored:
    """Stored bytes, taken by count."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""
        self._at = 0

    def up_to(self, size: int) -> bytes:
        """The next bytes; fewer only where the file ends."""
        taken = []
        while size:
            if self._at == len(self._held):
                self._held, self._at = next(self._pieces, b""), 0
                if not self._held:
                    break
            part = self._held[self._at : self._at + size]
            self._at += len(part)
            size -= len(part)
            taken.append(part)
        return b"".join(taken)

    def exactly(self, size: int) -> bytes:
        """The next bytes.

        Raises:
            Broken: the file ends before.
        """
        taken = self.up_to(size)
        if len(taken) < size:
            raise Broken("truncated", "the stream ends inside a zstd frame")
        return taken


def _zstd(stored: _Stored) -> Iterator[bytes]:
    """Any number of frames, one after the other (RFC 8878, section 3)."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    magic = stored.exactly(4)
    while magic:
        if magic == MAGIC:
            try:
                yield from _frame(stored, decompressor)
            except zstandard.ZstdError as error:
                raise Broken("corrupt", str(error)) from None
        elif magic[0] >> 4 == 5 and magic[1:] == SKIPPED:
            size = int.from_bytes(stored.exactly(4), "little")
            while size:
                size -= len(stored.exactly(min(size, PIECE)))
        else:
            raise Broken("corrupt", "no zstd frame begins here")
        magic = stored.up_to(4)
        if 0 < len(magic) < 4:
            raise Broken("truncated", "the stream ends inside a zstd frame")


def _frame(stored: _Stored, decompressor: zstandard.ZstdDecompressor) -> Iterator[bytes]:
    """The blocks of one frame, whose magic number has been taken."""
    header = MAGIC + stored.exactly(1)
    header += stored.exactly(zstandard.frame_header_size(header) - len(header))
    facts = zstandard.get_frame_parameters(header)
    if facts.dict_id:
        raise Broken("corrupt", f"a zstd frame needs dictionary {facts.dict_id}")
    # The library is not told the frame's length, and it is compared here: where it is wrong, the library
    # would give nothing of the last block, or, of a frame that has no other window, of any.
    checked, alone = header[4] & 0x04, header[4] & 0x20
    window = _window(facts.content_size) if alone else header[5]
    frame = decompressor.decompressobj()
    frame.decompress(MAGIC + bytes([checked, window]))
    length, last = 0, False
    while not last:
        start = stored.exactly(3)
        number = int.from_bytes(start, "little")
        last, kind, size = bool(number & 1), number >> 1 & 3, number >> 3
        size = 1 if kind == REPEATED else size
        body = stored.up_to(size)
        piece = frame.decompress(start + body)
        length += len(piece)
        if piece:
            yield piece
        if len(body) < size:
            raise Broken("truncated", "the stream ends inside a zstd frame")
    if facts.content_size not in (length, zstandard.CONTENTSIZE_UNKNOWN):
        raise Broken("corrupt", f"a zstd frame of {length} bytes should have {facts.content_size}")
    if checked:
        frame.decompress(stored.exactly(4))


def _window(length: int) -> int:
    """The byte that asks for a window of at least a frame's length, as far as `WINDOW` allows.

    And for 8 MiB at least, which every reader of zstd grants: memory is taken as it is filled.
    """
    exponent = max(length - 1, 2**23 - 1).bit_length()
    return (min(exponent, WINDOW.bit_length() - 1) - 10) << 3
