"""From stored bytes to the bytes that were compressed: gzip and zstd.

What comes out of a broken file follows from its bytes alone, not from the pieces in which a store gives
them: decompressors are fed in steps of a fixed size. A truncated file gives all that can be decompressed. A
corrupt one does so up to the break; a zstd file loses its last whole blocks, of 1 KiB of stored bytes or one.
"""

import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

import zstandard

READ = 2**20
"""Stored bytes that are asked for at a time: a remote store wants few requests."""

PIECE = 2**18
"""Bytes of the largest piece, but of a zstd file."""

GZIP_STEP = 2**16
"""Stored bytes that gzip is given at a time: what a member leaves over is copied, member by member."""

ZSTD_STEP = 2**10
"""Stored bytes that zstd is given at a time. It gives all that they expand to: at most 128 KiB for four."""

WINDOW = 2**27
"""Bytes that a zstd frame may look back, and so hold in memory: what the `zstd` command allows by itself."""


class CorruptFile(Exception):
    """The file cannot be read on from here.

    Attributes:
        kind: `truncated` where the file ends too early, `corrupt` where it holds what cannot be.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def decompress(source: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file.

    Args:
        source: the stored bytes; a read may give fewer than it was asked for.
        name: its ending says how the bytes are compressed (.gz, .zst), any other that they are not.

    Raises:
        Broken: when all that can be read before the break has been given.
        OSError: the source cannot be read; says nothing of what it holds.
    """
    if name.endswith(".gz"):
        return _gzip(_steps(source, GZIP_STEP))
    if name.endswith(".zst"):
        return _zstd(_steps(source, ZSTD_STEP))
    return _steps(source, PIECE)


def _steps(source: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield stored bytes, each time as many but the last."""
    held = bytearray()
    while data := source.read(READ):
        held += data
        whole = len(held) - len(held) % size
        for start in range(0, whole, size):
            yield bytes(held[start : start + size])
        del held[:whole]
    if held:
        yield bytes(held)


def _gzip(steps: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what any number of members hold, one after the other; zero bytes around them are padding."""
    member, begun = None, False
    for data in steps:
        begun = True
        while True:
            if member is None:
                data = data.lstrip(b"\0")
                if not data:
                    break
                member = zlib.decompressobj(wbits=31)
            before = member.copy()
            try:
                piece = member.decompress(data, PIECE)
            except zlib.error as error:
                # A call that fails gives nothing: once more, byte by byte.
                with suppress(zlib.error):
                    for at in range(len(data)):
                        yield before.decompress(data[at : at + 1])
                raise CorruptFile("corrupt", str(error)) from None
            yield piece
            if member.eof:
                data, member = member.unused_data, None
            elif len(piece) == PIECE:
                # It may have left some behind, even of stored bytes that are all taken.
                data = member.unconsumed_tail
            else:
                break
    if member is not None or not begun:
        raise CorruptFile("truncated", "the stream ends inside a gzip member")


def _zstd(steps: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what any number of frames hold, one after the other."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    frame, begun = None, False
    for data in steps:
        begun = True
        while data:
            frame = frame or decompressor.decompressobj()
            try:
                piece = frame.decompress(data)
            except zstandard.ZstdError as error:
                raise CorruptFile("corrupt", str(error)) from None
            yield piece
            data = frame.unused_data
            if frame.eof:
                frame = None
    if frame is not None or not begun:
        raise CorruptFile("truncated", "the stream ends inside a zstd frame")
