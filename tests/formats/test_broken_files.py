"""Truncated files, and files with a wrong byte: everything readable is read."""

import gzip
import hashlib
import io
import zlib
from contextlib import suppress
from itertools import accumulate

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.some_formats import (
    APACHE,
    good_lines,
    read,
)
from transom.formats.decompress import ZSTD_STEP, CorruptFile, decompress


def test_gzip_truncated_anywhere_gives_readable_lines_and_one_rejection() -> None:
    data = "".join(good_lines["apache"] + "\n" for _ in range(50)).encode()
    stored = gzip.compress(data)
    for cut in range(0, len(stored), 7):
        events, rejected, summary = read(stored[:cut], APACHE, "log.gz")
        text = zlib.decompressobj(wbits=31).decompress(stored[:cut])
        # A truncated line may still look complete.
        whole, half = text[: text.rfind(b"\n") + 1], text[text.rfind(b"\n") + 1 :]
        assert events == read(whole, APACHE)[0]
        assert [(row["reason"], row["raw"]) for row in rejected] == [("truncated", half.decode())]
        assert rejected[-1]["source_line"] == summary.lines == whole.count(b"\n") + 1
        assert summary.broken is not None
    assert read(stored[:20] + b"\0\0\0\0" + stored[24:], APACHE, "log.gz")[2].broken is not None
    assert read(stored + stored, APACHE, "log.gz")[2].accepted == 100


class Short(io.BytesIO):
    """Returns at most some bytes at a read."""

    limit = 1

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self.most)


@pytest.mark.parametrize("name", ["log.gz", "log.zst"])
@given(at=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255), limit=st.integers(1, 5000))
def test_flipped_byte_gives_the_lines_before_it_for_any_reads(
    name: str, at: float, change: int, limit: int
) -> None:
    lines = [good_lines["apache"].replace(" 12 ", f" {number**4} ") + "\n" for number in range(500)]
    data = "".join(lines).encode()
    # Several members, or blocks of one frame: little can be read of a single broken one.
    parts = [data[start : start + 9000] for start in range(0, len(data), 9000)]
    if name == "log.gz":
        stored = [gzip.compress(part) for part in parts]
    else:
        compressor = zstandard.ZstdCompressor(write_checksum=True).compressobj()
        flush = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        stored = [compressor.compress(part) + compressor.flush(flush) for part in parts]
        stored.append(compressor.flush())
    ends = list(accumulate(map(len, stored)))
    index = int(at * ends[-1])
    broken = bytearray(b"".join(stored))
    broken[index] ^= change

    events, rejected, summary = read(bytes(broken), APACHE, name)
    source = Short(broken)
    source.most = limit
    assert read(source, APACHE, name) == (events, rejected, summary)
    if summary.broken is None:
        # Not every byte matters: a gzip header has a time and a system.
        assert summary.sha256 == hashlib.sha256(data).hexdigest()
        return
    assert rejected[-1]["source_line"] == summary.lines
    assert summary.broken == f"{rejected[-1]['reason']}: {rejected[-1]['detail']}"
    assert rejected[-1]["detail"].startswith(f"after {summary.bytes} decompressed bytes: ")
    # Nothing of the input that zstd gets together with the break may appear.
    sound = index if name == "log.gz" else index - ZSTD_STEP
    before = b"".join(part for part, end in zip(parts, ends, strict=False) if end <= sound)
    assert events[: before.count(b"\n")] == read(data, APACHE)[0][: before.count(b"\n")]
    text = bytearray()
    with suppress(CorruptFile):
        for piece in decompress(io.BytesIO(broken), name):
            text += piece
    whole = text.rfind(b"\n") + 1
    assert rejected[-1]["raw"] == text[whole:].decode(errors="backslashreplace")
    assert events == read(bytes(text[:whole]), APACHE)[0]
