"""The first lines of a log, and why a file is none."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from transom.cli.arguments import UsageError
from transom.core.terminal import counted
from transom.formats.lines import MARK, MAX_RAW_BYTES, ByteStats, decompressed, without_holes

LOG = logging.getLogger(__name__)
MAX_BYTES = 2**20
"""Decompressed bytes of a file that are looked at."""
LONGEST = MAX_RAW_BYTES
"""Bytes of a first line of JSON that may hold a list of records: it is looked at whole."""
HEAD = 1000
"""Bytes by which another encoding is told."""
JQ = "jq -c '{}' FILE > NEW"
"""What takes JSON apart, an object a line."""
ICONV = "iconv -f {} -t UTF-8 FILE > NEW"
"""What makes UTF-8 of another encoding."""
HOW = {b"\x1f\x8b": ("gzip", ".gz"), b"\x28\xb5\x2f\xfd": ("zstd", ".zst")}
"""How a compressed file begins, and how its name ends then."""


class EmptyFile(UsageError):
    """A file without a byte."""


@dataclass(frozen=True)
class LogSample:
    """The first lines of a file.

    Attributes:
        lines: without their ends; none is empty.
        other: lines that are not in UTF-8; a job refuses them.
        whole: whether the file has no others.
        data: the bytes of all lines, as a job reads them: with those that are empty, and that hold NUL bytes.
        numbers: of the lines, as an editor counts them, from 1.
        nul_bytes: how many NUL bytes come before lines; they are skipped.
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
        """Return which line of the file one of the lines is, both counted from 1."""
        return self.numbers[line - 1] if line <= len(self.numbers) else line


def read_sample(path: Path, most: int = MAX_BYTES, longest: int = LONGEST) -> LogSample:
    """Reads the beginning of a log.

    Args:
        most: decompressed bytes that are read; of a line that is cut there nothing is taken.
        longest: the same, of a first line of JSON.

    Raises:
        Refusal: the file is not there, a folder, empty, binary, or compressed in a way that its name does
            not say.
    """
    data, whole, nul_bytes = _beginning(path, most)
    begins = data.removeprefix(MARK).lstrip()[:1]
    if not whole and begins == b"{" and b"\n" not in data:
        most = longest
        data, whole, nul_bytes = _beginning(path, most)
    data = data.removeprefix(MARK)
    if not whole:
        cut = data.rfind(b"\n") + 1
        if not cut:
            records = {b"{": ".Records[]", b"[": ".[]"}.get(begins)
            advice = f"; of JSON, make an object a line: {JQ.format(records)}" if records else ""
            raise UsageError(f"{path}: a line must end within {most} bytes; the first one is longer{advice}")
        data = data[:cut]
    lines, numbers, other, binary = list[str](), list[int](), list[bytes](), 0
    for number, line in enumerate(data.split(b"\n"), 1):
        plain = line.removesuffix(b"\r")
        if not plain:
            continue
        if b"\0" in plain:
            binary += 1
            continue
        try:
            lines.append(plain.decode())
            numbers.append(number)
        except UnicodeDecodeError:
            other.append(plain)
    if binary > len(lines) + len(other):
        at = data.find(b"\0")
        raise UsageError(
            f"{path}: must be text, a line a record; got a binary file, with a zero byte at {at}"
        )
    if not lines and not other:
        if not data:
            raise EmptyFile(f"{path}: must hold a line; it is empty")
        raise UsageError(f"{path}: must hold a line; it has blank lines alone")
    sample = LogSample(path, tuple(lines), whole, tuple(other), data, tuple(numbers), nul_bytes)
    if len(other) > len(lines):
        raise UsageError(not_utf8(sample))
    return sample


def read_samples(paths: Iterable[Path]) -> list[LogSample]:
    """Read the beginnings of files, and pass over those that are empty.

    Raises:
        Refusal: as of `read_sample`; or every file is empty.
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
        LOG.warning(f"{path}: is empty, and passed over")
    return samples


def not_utf8(sample: LogSample) -> str:
    """What is wrong with a file of which some lines are in another encoding, and what mends it."""
    number, all_ = len(sample.other), len(sample.lines) + len(sample.other)
    are = "is" if number == 1 else "are"
    # What Latin-1 has for controls, Windows has for quotes and dashes.
    windows = any(0x80 <= byte < 0xA0 for line in sample.other for byte in line)
    encoding = "WINDOWS-1252" if windows else "ISO-8859-1"
    return (
        f"{sample.path}: must be text in UTF-8; {number} of {counted(all_, 'line')} {are} not. If it is in "
        f"{encoding}, as it seems: {ICONV.format(encoding)}"
    )


def _refuse_utf16(path: Path, data: bytes) -> None:
    """UTF-16 begins with a mark of its own, or has a zero in every second byte."""
    head = data[:HEAD]
    for encoding, mark, zeros in (
        ("UTF-16LE", b"\xff\xfe", head[1::2]),
        ("UTF-16BE", b"\xfe\xff", head[::2]),
    ):
        marked = head.startswith(mark)
        if marked or (
            len(zeros) > 4 and zeros.count(0) > 0.8 * len(zeros) and head.count(0) < 0.6 * len(head)
        ):
            name = "UTF-16" if marked else encoding
            raise UsageError(
                f"{path}: must be text in UTF-8; it is in {name}. Make it so: {ICONV.format(name)}"
            )


def _checked_pieces(path: Path, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a file.

    Raises:
        Refusal: it begins as UTF-16 does.
    """
    head = b""
    for piece in pieces:
        if len(head) < HEAD:
            head += piece[: HEAD - len(head)]
            if len(head) == HEAD:
                _refuse_utf16(path, head)
        yield piece
    if len(head) < HEAD:
        _refuse_utf16(path, head)


def _beginning(path: Path, most: int) -> tuple[bytes, bool, int]:
    """The first bytes of a file, decompressed, without NUL bytes before lines; whether they are all; and how
    many such NUL bytes there are."""
    if path.is_dir():
        raise UsageError(f"{path}: must be a file; it is a folder, name the files in it")
    if not path.exists():
        raise UsageError(f"{path}: there is no such file")
    tally = ByteStats(())
    data, whole = bytearray(), True
    try:
        with path.open("rb") as source:
            for start, (kind, ending) in HOW.items():
                if source.read(len(start)) == start and not path.name.endswith(ending):
                    raise UsageError(f"{path}: is {kind}, so its name must end in {ending}")
                source.seek(0)
            pieces = _checked_pieces(path, decompressed(source, path.name, tally))
            for piece in without_holes(pieces, tally):
                data += piece
                if len(data) > most:
                    whole = False
                    break
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    if tally.nul_bytes and tally.nul_bytes == tally.size:
        number = counted(tally.nul_bytes, "NUL byte")
        raise UsageError(f"{path}: must hold a line; it holds {number} and nothing else")
    if tally.broken is not None and not data:
        kind = "gzip" if path.name.endswith(".gz") else "zstd"
        raise UsageError(f"{path}: must be {kind}, as its name says; {': '.join(tally.broken)}")
    return bytes(data[:most]), whole, tally.nul_bytes
