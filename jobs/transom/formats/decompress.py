"""Decompress stored bytes: gzip and zstd.

The output of a broken file depends only on its bytes, not on the pieces that a store returns: decompressors
get steps of a fixed size. A truncated file yields all bytes that can be decompressed, a corrupt one those
before the break. A broken zstd file also loses its last block, and possibly others in
the same KiB of stored bytes.
"""

import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

import zstandard

READ = 2**20
"""Stored bytes per read, many, so that a remote store gets few requests."""

PIECE = 2**18
"""Maximum number of bytes of an output piece, except for zstd."""

GZIP_STEP = 2**16
"""Stored bytes per step of gzip, few, as the unused rest of a step is copied for each member."""

ZSTD_STEP = 2**10
"""Stored bytes per step of zstd, which returns the whole output of a step: up to 128 KiB per four bytes."""

WINDOW = 2**27
"""Maximum window of a zstd frame, in bytes of memory: the default limit of the `zstd` command."""


class CorruptFile(Exception):
    """The rest of the file cannot be read.

    Attributes:
        kind: `truncated` if the file ends too early, `corrupt` if its content is invalid.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def decompress(source: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file.

    >>> from io import BytesIO
    >>> b"".join(decompress(BytesIO(zlib.compress(b"a line", wbits=31)), "web.log.gz"))
    b'a line'

    Args:
        source: the stored bytes; a read may return fewer bytes than requested.
        name: the file's name. Its suffix selects the compression (.gz, .zst; others are not compressed).

    Raises:
        CorruptFile: after all bytes before the break were yielded.
        OSError: the source cannot be read, independent of its content.
    """
    if name.endswith(".gz"):
        return _gzip(_steps(source, GZIP_STEP))
    if name.endswith(".zst"):
        return _zstd(_steps(source, ZSTD_STEP))
    return _steps(source, PIECE)


def _steps(source: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield stored bytes in pieces of equal size, except the last."""
    buffer = bytearray()
    while data := source.read(READ):
        buffer += data
        whole = len(buffer) - len(buffer) % size
        for start in range(0, whole, size):
            yield bytes(buffer[start : start + size])
        del buffer[:whole]
    if buffer:
        yield bytes(buffer)


def _gzip(steps: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the content of any number of consecutive members; zero bytes around them are padding."""
    member, has_data = None, False
    for data in steps:
        has_data = True
        while True:
            if member is None:
                data = data.lstrip(b"\0")
                if not data:
                    break
                member = zlib.decompressobj(wbits=31)
            saved = member.copy()
            try:
                piece = member.decompress(data, PIECE)
            except zlib.error as error:
                # A failing call returns nothing: repeat it byte by byte.
                with suppress(zlib.error):
                    for at in range(len(data)):
                        yield saved.decompress(data[at : at + 1])
                raise CorruptFile("corrupt", str(error)) from None
            yield piece
            if member.eof:
                data, member = member.unused_data, None
            elif len(piece) == PIECE:
                # There may be more output, even if all stored bytes were used.
                data = member.unconsumed_tail
            else:
                break
    if member is not None or not has_data:
        raise CorruptFile("truncated", "the stream ends inside a gzip member")


def _zstd(steps: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the content of any number of consecutive frames."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    frame, has_data = None, False
    for data in steps:
        has_data = True
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
    if frame is not None or not has_data:
        raise CorruptFile("truncated", "the stream ends inside a zstd frame")
