"""A broken gzip or zstd file gives the content before its break, for any split of its bytes."""

import gzip
import io
import random
import tracemalloc
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.support.examples import rare_case
from transom.formats.decompress import GZIP_STEP, PIECE, READ, ZSTD_STEP, CorruptFile, decompress

ZSTD_BLOCK = 2**17
SKIPPABLE = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"12345"
LOG = b"".join(
    b'10.0.0.%d - - [17/May/2015:10:%02d:%02d +0000] "GET /%x HTTP/1.1" 200 %d\n'
    % (n % 97, n // 60, n % 60, n**5, n)
    for n in range(3000)
)


class Short(io.BytesIO):
    """Returns at most some bytes at a read."""

    def __init__(self, data: bytes, limit: int) -> None:
        super().__init__(data)
        self.most = limit

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size > 0
        return super().read(min(size, self.most))


def unpack(stored: bytes, name: str, limit: int = READ) -> tuple[bytes, str | None]:
    """Return the output, and the error."""
    result = bytearray()
    try:
        for piece in decompress(Short(stored, limit), name):
            result += piece
    except CorruptFile as broken:
        return bytes(result), f"{broken.kind}: {broken}"
    return bytes(result), None


def decompress_bytewise(stored: bytes, name: str) -> bytes:
    """Return the output of a decompressor that gets one byte after the other, up to the byte that it
    rejects.
    """
    result = bytearray()
    state: Any = None
    for number in stored:
        if state is None:
            if name == "log.gz" and number == 0:
                continue
            state = (
                zlib.decompressobj(wbits=31)
                if name == "log.gz"
                else zstandard.ZstdDecompressor().decompressobj()
            )
        try:
            result += state.decompress(bytes([number]))
        except (zlib.error, zstandard.ZstdError):
            break
        if state.eof:
            state = None
    return bytes(result)


contents = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.tuples(st.sampled_from([b"a", b"ab\n", b"GET /index.html\n"]), st.integers(1, 400)).map(
            lambda pair: pair[0] * pair[1]
        ),
        st.tuples(st.randoms(use_true_random=False), st.integers(1, 300)).map(
            lambda pair: pair[0].randbytes(pair[1])
        ),
    ),
    max_size=5,
)


@st.composite
def member(draw: DrawFn, parts: list[bytes]) -> bytes:
    level = draw(st.sampled_from([0, 1, 6, 9]))
    strategy = draw(st.sampled_from([zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE]))
    compressor = zlib.compressobj(level, zlib.DEFLATED, 31, 9, strategy)
    flush = draw(st.sampled_from([zlib.Z_NO_FLUSH, zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH]))
    stored = b"".join(compressor.compress(part) + compressor.flush(flush) for part in parts)
    return stored + compressor.flush() + bytes(draw(st.sampled_from([0, 0, 0, 3])))


@st.composite
def frame(draw: DrawFn, parts: list[bytes]) -> bytes:
    compressor = zstandard.ZstdCompressor(
        draw(st.sampled_from([1, 3, 19])),
        write_checksum=draw(st.booleans()),
        write_content_size=draw(st.booleans()),
    ).compressobj(draw(st.sampled_from([-1, sum(map(len, parts))])))
    stored = b"".join(
        compressor.compress(part) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for part in parts
    )
    return draw(st.sampled_from([b"", b"", b"", SKIPPABLE])) + stored + compressor.flush()


@st.composite
def damaged(draw: DrawFn, name: str) -> tuple[str, bytes, bytes]:
    """Draw a kind of damage, the content of a file, and its remaining bytes."""
    retained = draw(st.lists(contents, min_size=1, max_size=3))
    stored = b"".join(draw(member(parts) if name == "log.gz" else frame(parts)) for parts in retained)
    content = b"".join(map(b"".join, retained))
    damage = draw(st.sampled_from(["none", "flip", "flip", "flip", "cut", "junk"]))
    at = draw(st.integers(0, len(stored) - 1))
    if damage == "flip":
        stored = stored[:at] + bytes([stored[at] ^ draw(st.integers(1, 255))]) + stored[at + 1 :]
    elif damage == "cut":
        stored = stored[:at]
    elif damage == "junk":
        stored += draw(
            st.sampled_from([b"junk", b"\x1f\x8bjunk", b"\x28\xb5\x2f\xfd\xff\xff", b"\0\1\2\3\4"])
        )
    return damage, content, stored


@pytest.mark.parametrize("name", ["log.gz", "log.zst"])
@rare_case(4)
@given(data=st.data(), limit=st.one_of(st.integers(1, 60), st.just(READ)))
def test_content_before_the_break_is_returned_for_any_split(
    name: str, data: st.DataObject, limit: int
) -> None:
    damage, content, stored = data.draw(damaged(name))
    result, broken = unpack(stored, name)
    assert unpack(stored, name, limit) == (result, broken)
    expected = decompress_bytewise(stored, name)
    assert expected.startswith(result) or result.startswith(expected)
    if name == "log.gz" or broken is None or broken.startswith("truncated: "):
        assert result.startswith(expected)
    else:
        assert result.startswith(decompress_bytewise(stored[: len(stored) - ZSTD_STEP], name)[: len(result)])
    if damage == "none":
        assert (result, broken) == (content, None)
    elif damage == "junk":
        assert content.startswith(result) if name == "log.zst" else result == content
        assert broken is not None
    elif damage == "cut":
        assert content.startswith(result)
        assert broken is None or broken.startswith("truncated: ")


def test_gzip_truncated_anywhere_gives_all_content_of_its_bytes() -> None:
    # Most of it is in matches of 258 bytes, for which small buffers have no room at once.
    stored = gzip.compress(b"ab" * 1000 + b"xyz")
    for end in range(1, len(stored)):
        expected = (
            decompress_bytewise(stored[:end], "log.gz"),
            "truncated: the stream ends inside a gzip member",
        )
        assert unpack(stored[:end], "log.gz") == expected
        assert unpack(stored[:end], "log.gz", 3) == expected


@pytest.mark.full
@pytest.mark.parametrize("name", ["log.gz", "log.zst"])
def test_late_break_of_a_large_file_is_found(name: str) -> None:
    step = GZIP_STEP if name == "log.gz" else ZSTD_STEP
    content = LOG * 2 + random.Random(1).randbytes(3 * GZIP_STEP) + LOG
    stored = gzip.compress(content) if name == "log.gz" else zstandard.compress(content)
    assert len(stored) > 3 * GZIP_STEP
    for at in (step // 2, step, 3 * step + 1, len(stored) - 9000, len(stored) - 9):
        flipped = stored[:at] + bytes([stored[at] ^ 4]) + stored[at + 1 :]
        result, broken = unpack(flipped, name)
        known = (
            decompress_bytewise(flipped, name)
            if name == "log.gz"
            else decompress_bytewise(stored[: at // step * step], name)
        )
        assert result.startswith(known)
        assert unpack(flipped, name, 1009) == (result, broken)
        result, broken = unpack(stored[:at], name)
        assert result == decompress_bytewise(stored[:at], name)
        assert broken is not None
        assert broken.startswith("truncated: ")


@pytest.mark.parametrize(
    ("name", "stored", "broken"),
    [
        ("log.gz", b"", "truncated: the stream ends inside a gzip member"),
        ("log.zst", b"", "truncated: the stream ends inside a zstd frame"),
        ("log.gz", b"plain text\n", "corrupt: Error -3 while decompressing data: incorrect header check"),
        ("log.zst", b"plain text\n", "corrupt: zstd decompressor error: Unknown frame descriptor"),
        ("log.zst", SKIPPABLE[:-1], "truncated: the stream ends inside a zstd frame"),
        ("log.zst", SKIPPABLE, None),
        ("log.gz", bytes(100), None),
        ("log.zst", bytes(100), "corrupt: zstd decompressor error: Unknown frame descriptor"),
        # A frame that needs dictionary 7
        (
            "log.zst",
            b"\x28\xb5\x2f\xfd\x21\x07\x01\x09\0\0a",
            "corrupt: zstd decompressor error: Dictionary mismatch",
        ),
        # A window of 1 GiB, and a block of one byte
        (
            "log.zst",
            b"\x28\xb5\x2f\xfd\0\xa0\x09\0\0a",
            "corrupt: zstd decompressor error: Frame requires too much memory for decoding",
        ),
    ],
)
def test_files_without_a_line_are_empty(name: str, stored: bytes, broken: str | None) -> None:
    assert unpack(stored, name) == (b"", broken)


def test_wrong_checksum_of_gzip_loses_no_byte() -> None:
    stored = gzip.compress(LOG)
    for at in range(len(stored) - 8, len(stored)):
        result, broken = unpack(stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :], "log.gz")
        assert result == LOG
        kind = "data" if at < len(stored) - 4 else "length"
        assert broken == f"corrupt: Error -3 while decompressing data: incorrect {kind} check"


def test_wrong_checksum_of_zstd_loses_the_last_step() -> None:
    stored = zstandard.ZstdCompressor(write_checksum=True).compress(LOG)
    result, broken = unpack(stored[:-1] + b"?", "log.zst")
    assert result == decompress_bytewise(stored[: (len(stored) - 1) // ZSTD_STEP * ZSTD_STEP], "log.zst")
    assert broken == "corrupt: zstd decompressor error: Restored data doesn't match checksum"


def test_zstd_frame_may_look_back_over_its_whole_length() -> None:
    noise = random.Random(3).randbytes(9 * 2**20)
    content = noise + noise[: 2**20]
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=25, enable_ldm=True)
    stored = zstandard.ZstdCompressor(compression_params=parameters).compress(content)
    assert len(stored) < len(noise) + 2**19
    assert unpack(stored, "log.zst") == (content, None)


def test_truncated_zstd_frame_gives_whole_blocks_and_part_of_a_raw_block() -> None:
    noise = random.Random(2).randbytes(1000)
    stored = zstandard.compress(noise)
    assert unpack(stored[:-1], "log.zst")[0] == noise[:-1]
    content = LOG * 4
    stored = zstandard.compress(content)
    result, broken = unpack(stored[:-1], "log.zst")
    assert result == content[: len(content) // ZSTD_BLOCK * ZSTD_BLOCK]
    assert broken == "truncated: the stream ends inside a zstd frame"


def repeated(data: bytes, times: int, name: str) -> bytes:
    compressor: Any = (
        zlib.compressobj(9, wbits=31) if name == "log.gz" else zstandard.ZstdCompressor().compressobj()
    )
    return b"".join([*(compressor.compress(data) for _ in range(times)), compressor.flush()])


@pytest.mark.parametrize("name", ["log.gz", "log.zst"])
def test_memory_does_not_grow_with_the_decompressed_size(name: str) -> None:
    stored = repeated(bytes(2**20), 256, name)
    assert len(stored) < 2**19
    tracemalloc.start()
    try:
        total = sum(map(len, decompress(io.BytesIO(stored), name)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert total == 256 * 2**20
    assert peak < 2 * (READ + (PIECE if name == "log.gz" else ZSTD_STEP * 2**15))


class Failing(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            raise OSError("the store is away")
        return super().read(20)


@pytest.mark.parametrize("name", ["log", "log.gz", "log.zst"])
def test_failing_store_does_not_mark_a_file_as_broken(name: str) -> None:
    stored = {"log": LOG, "log.gz": gzip.compress(LOG), "log.zst": zstandard.compress(LOG)}[name]

    def read() -> Iterator[bytes]:
        yield from decompress(Failing(stored), name)

    with pytest.raises(OSError, match="the store is away"):
        list(read())
