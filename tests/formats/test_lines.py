"""Lines of any length, in bounded memory: blocks and their lines, compared with the reference."""

import hashlib
import io
import itertools
import tracemalloc
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.reference_lines import lines
from tests.support.examples import rare_case
from transom.formats.decompress import PIECE
from transom.formats.lines import BLOCK, LINES, LONGEST, MARK, MAX_RAW_BYTES, blocks, split
from transom.formats.read_file import Chunk, FileSummary, read_file
from transom.formats.record_format import EventTime, Field, RecordFormat

MIB = 2**20
POOLS: list[pa.MemoryPool] = []
"""Arrow crashes if an array outlives its pool: none is released."""
LAYOUT = RecordFormat("csv", (Field("client", ("client",)),), EventTime(("ts",), (), "epoch"))

parts = st.one_of(
    st.sampled_from([b"\n", b"\r\n", b"\r", b"\r\r\n", MARK, b"a", b"ab\r"]),
    st.integers(1, 60).map(lambda count: b"0123456789" * count),
    st.integers(1, 60).map(lambda count: b"\r" * count),
)


@rare_case(10)
@given(
    st.lists(parts, max_size=12),
    st.integers(1, 40),
    st.booleans(),
    st.integers(1, 100),
    st.integers(0, 20),
)
def test_blocks_have_the_lines_of_the_reference(
    draws: list[bytes], length: int, evenly: bool, size: int, retained: int
) -> None:
    data = b"".join(draws)
    # Cut evenly, or between two parts.
    pieces = [data[at : at + length] for at in range(0, len(data), length)] if evenly else draws
    result: list[tuple[bytes, int]] = []
    for number, block in enumerate(blocks(pieces, size, retained)):
        assert len(block.data) <= size + retained + len(MARK) + 1 + max(map(len, pieces))
        block = replace(block, data=block.data.removeprefix(MARK)) if number == 0 else block
        if block.data:
            result += zip(*(array.tolist() for array in split(block)), strict=True)
    expected = lines(data)
    assert [(text[:retained], length) for text, length in result] == [
        (line[:retained], len(line)) for line in expected
    ]
    for (text, _), line in zip(result, expected, strict=True):
        assert text == line or len(line) > retained


def test_block_of_empty_lines_ends_before_its_size() -> None:
    counts = [block.data.count(b"\n") for block in blocks(itertools.repeat(b"\n" * PIECE, 20), BLOCK)]
    assert sum(counts) == 20 * PIECE
    assert max(counts) < LINES + PIECE


class Generated(io.RawIOBase):
    """A file that is never in memory as a whole."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.pieces = iter(pieces)
        self.rest = b""

    def read(self, size: int = -1, /) -> bytes:
        self.rest = self.rest or next(self.pieces, b"")
        selected, self.rest = self.rest[:size], self.rest[size:]
        return selected


def read(
    pieces: Iterable[bytes], name: str, known: tuple[int, ...] = ()
) -> tuple[list[Chunk], FileSummary, int]:
    """Return the content of a file, and the peak number of bytes in Python, numpy and Arrow."""
    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        *chunks, summary = read_file(cast(Any, Generated(pieces)), name, LAYOUT, None, known=known)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    assert isinstance(summary, FileSummary)
    return cast(list[Chunk], chunks), summary, peak + pool.max_memory()


def compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(1, wbits=31)
    for piece in pieces:
        yield from filter(None, (compressor.compress(piece),))
    yield compressor.flush()


LONG = {
    "letters": [b"x" * MIB] * 300,
    # With one character that Python stores in four bytes, and bytes that are no text.
    "no text": ["💩".encode(), *[b"x" * (MIB - 1) + b"\xff"] * 300],
}


@pytest.mark.parametrize("name", ["log", "log.gz"])
@pytest.mark.parametrize("kind", LONG)
def test_line_without_an_end_uses_bounded_memory(kind: str, name: str) -> None:
    before, after = b"ts,client\n1,a\n", b"\r\n2,b\n"
    pieces = [before, *LONG[kind], after]
    digest, size, known = hashlib.sha256(), 0, {}
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
        known[size] = digest.hexdigest()

    chunks, summary, peak = read(compressed(pieces) if name == "log.gz" else pieces, name, tuple(known))
    assert [line for chunk in chunks for line in chunk.events.column("source_line").to_pylist()] == [2, 4]
    [row] = [row for chunk in chunks for row in chunk.rejected.to_pylist()]
    length = sum(map(len, LONG[kind]))
    assert (row["source_line"], row["reason"]) == (3, "line_too_long")
    assert row["detail"] == f"line too long: {length}; expected at most 1048576 bytes"
    # Compared as digests: a difference of 16 MiB is not worth showing.
    retained = b"".join(LONG[kind][:18])[:MAX_RAW_BYTES].decode("utf-8", "backslashreplace")
    assert hashlib.sha256(row["raw"].encode()).digest() == hashlib.sha256(retained.encode()).digest()
    assert (summary.lines, summary.bytes, summary.sha256) == (4, size, digest.hexdigest())
    assert summary.prefix_digests == known
    assert peak < 10 * (BLOCK + MAX_RAW_BYTES) < length


def test_stored_text_is_the_whole_line_decoded_at_once() -> None:
    # A split in parts cuts characters of every length, and broken ones, anywhere.
    line = ("aé€💩".encode() * 30 + b"\xff\xe2\x82") * (MAX_RAW_BYTES // 303 + 2)
    for cut in (LONGEST + 1, *range(3 * MIB, 3 * MIB + 12), len(line)):
        chunk, _ = read_file(io.BytesIO(line[:cut]), "log", LAYOUT, None)
        assert isinstance(chunk, Chunk)
        whole = line[: min(cut, MAX_RAW_BYTES)].decode("utf-8", "backslashreplace")
        assert chunk.rejected.column("raw")[0].as_py() == whole
