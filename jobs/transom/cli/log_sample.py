"""Read the first lines of a log, or raise why a file is no log."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from transom.cli.arguments import UsageError
from transom.core.terminal import counted
from transom.formats.lines import MARK, MAX_RAW_BYTES, ByteStats, decompressed, without_nul_bytes

LOG = logging.getLogger(__name__)
MAX_BYTES = 2**20
"""Maximum number of decompressed bytes of a sample."""
MAX_JSON_BYTES = MAX_RAW_BYTES
"""The same if the first line is longer JSON; it may be a list of records."""
HEAD = 1000
"""Number of bytes that are checked for another encoding."""
JQ = "jq -c '{}' FILE > NEW"
"""Command that writes JSON as one object per line."""
ICONV = "iconv -f {} -t UTF-8 FILE > NEW"
"""Command that converts another encoding to UTF-8."""
COMPRESSED = {b"\x1f\x8b": ("gzip", ".gz"), b"\x28\xb5\x2f\xfd": ("zstd", ".zst")}
"""Name and suffix of each compression, by the first bytes of a compressed file."""


class EmptyFile(UsageError):
    """The file is empty."""


@dataclass(frozen=True)
class LogSample:
    """The first lines of a file.

    Attributes:
        lines: the lines without their ends, and without empty ones.
        whole: whether the file has no other lines.
        other: lines that are not UTF-8; a job rejects them.
        data: the bytes of all lines as a job reads them, with empty lines and lines with NUL bytes.
        numbers: the line numbers in the file, from 1.
        nul_bytes: the number of skipped NUL bytes before lines.
    """

    path: Path
    lines: tuple[str, ...]
    whole: bool
    other: tuple[bytes, ...] = ()
    data: bytes = field(default=b"", compare=False, repr=False)
    numbers: tuple[int, ...] = field(default=(), compare=False, repr=False)
    nul_bytes: int = field(default=0, compare=False)

    @property
    def content(self) -> bytes:
        """The bytes of the file's first lines."""
        return self.data or b"".join(line + b"\n" for line in (*map(str.encode, self.lines), *self.other))

    def number(self, line: int) -> int:
        """Return the number in the file of the n-th line of `lines`; both count from 1."""
        return self.numbers[line - 1] if line <= len(self.numbers) else line


def read_sample(path: Path, max_bytes: int = MAX_BYTES, max_json_bytes: int = MAX_JSON_BYTES) -> LogSample:
    """Read the beginning of a log.

    Args:
        max_bytes: the maximum number of decompressed bytes; a line that is cut there is dropped.
        max_json_bytes: the same if the first line is JSON.

    Raises:
        UsageError: the file is missing, a folder, empty, binary, or compressed without the suffix for it.
    """
    data, whole, nul_bytes = _beginning(path, max_bytes)
    first = data.removeprefix(MARK).lstrip()[:1]
    if not whole and first == b"{" and b"\n" not in data:
        max_bytes = max_json_bytes
        data, whole, nul_bytes = _beginning(path, max_bytes)
    data = data.removeprefix(MARK)
    if not whole:
        cut = data.rfind(b"\n") + 1
        if not cut:
            records = {b"{": ".Records[]", b"[": ".[]"}.get(first)
            advice = f"; of JSON, make an object a line: {JQ.format(records)}" if records else ""
            rule = f"a line must end within {max_bytes} bytes; the first one is longer"
            raise UsageError(f"{path}: {rule}{advice}")
        data = data[:cut]
    lines, numbers, other, binary = list[str](), list[int](), list[bytes](), 0
    for number, line in enumerate(data.split(b"\n"), 1):
        plain = line.removesuffix(b"\r")
        if b"\0" in plain:
            binary += 1
        elif plain:
            try:
                lines.append(plain.decode())
                numbers.append(number)
            except UnicodeDecodeError:
                other.append(plain)
    if binary > len(lines) + len(other):
        rule = "must be text, a line a record"
        raise UsageError(f"{path}: {rule}; got a binary file, with a zero byte at {data.find(0)}")
    if not data:
        raise EmptyFile(f"{path}: must hold a line; it is empty")
    if not lines and not other:
        raise UsageError(f"{path}: must hold a line; it has blank lines alone")
    sample = LogSample(path, tuple(lines), whole, tuple(other), data, tuple(numbers), nul_bytes)
    if len(other) > len(lines):
        raise UsageError(not_utf8(sample))
    return sample


def read_samples(paths: Iterable[Path]) -> list[LogSample]:
    """Read the beginnings of files that are not empty.

    Raises:
        UsageError: as `read_sample`, or every file is empty.
    """
    samples, empty = list[LogSample](), list[tuple[Path, EmptyFile]]()
    for path in paths:
        try:
            samples.append(read_sample(path))
        except EmptyFile as error:
            empty.append((path, error))
    if empty and not samples:
        raise empty[0][1]
    for path, _ in empty:
        LOG.warning(f"{path}: is empty, and skipped")
    return samples


def not_utf8(sample: LogSample) -> str:
    """Return a message on lines in another encoding, with the remedy."""
    number, total = len(sample.other), len(sample.lines) + len(sample.other)
    are = "is" if number == 1 else "are"
    # Bytes that are control characters in Latin-1 are quotes and dashes in Windows-1252.
    windows = any(0x80 <= byte < 0xA0 for line in sample.other for byte in line)
    encoding = "WINDOWS-1252" if windows else "ISO-8859-1"
    return (
        f"{sample.path}: must be text in UTF-8; {number} of {counted(total, 'line')} {are} not. If it is in "
        f"{encoding}, as it seems: {ICONV.format(encoding)}"
    )


def _refuse_utf16(path: Path, head: bytes) -> None:
    """Raise UsageError if a file begins with the byte order mark of UTF-16, or every second byte is zero."""
    name = "UTF-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else ""
    for encoding, zeros in (("UTF-16LE", head[1::2]), ("UTF-16BE", head[::2])):
        if len(zeros) > 4 and zeros.count(0) > 0.8 * len(zeros) and head.count(0) < 0.6 * len(head):
            name = name or encoding
    if name:
        advice = f"Convert it: {ICONV.format(name)}"
        raise UsageError(f"{path}: must be text in UTF-8; it is in {name}. {advice}")


def _beginning(path: Path, max_bytes: int) -> tuple[bytes, bool, int]:
    """Return the first decompressed bytes without NUL bytes before lines, whether these are the whole file,
    and the number of removed NUL bytes."""
    if path.is_dir():
        raise UsageError(f"{path}: must be a file; it is a folder, name the files in it")
    if not path.exists():
        raise UsageError(f"{path}: there is no such file")
    tally = ByteStats(())
    data, whole = bytearray(), True
    try:
        with path.open("rb") as source:
            for start, (kind, ending) in COMPRESSED.items():
                if source.read(len(start)) == start and not path.name.endswith(ending):
                    raise UsageError(f"{path}: is {kind}, so its name must end in {ending}")
                source.seek(0)
            pieces = decompressed(source, path.name, tally)
            first = next(pieces, b"")
            _refuse_utf16(path, first[:HEAD])
            for piece in without_nul_bytes(chain([first], pieces), tally):
                data += piece
                if len(data) > max_bytes:
                    whole = False
                    break
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    if tally.nul_bytes and tally.nul_bytes == tally.size:
        number = counted(tally.nul_bytes, "NUL byte")
        raise UsageError(f"{path}: must hold a line; it holds {number} and nothing else")
    if tally.broken is not None and not data:
        kind = "gzip" if path.name.endswith(".gz") else "zstd"
        raise UsageError(f"{path}: must be {kind}, as its name implies; {': '.join(tally.broken)}")
    return bytes(data[:max_bytes]), whole, tally.nul_bytes
