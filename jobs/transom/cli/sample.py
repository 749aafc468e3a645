"""The first lines of a log, and why a file is none."""

from dataclasses import dataclass
from pathlib import Path

from transom.cli.asked import Refusal
from transom.cli.shown import counted
from transom.formats.lines import KEPT, MARK, Tally, decompressed

MOST = 2**20
"""Decompressed bytes of a file that are looked at."""
LONGEST = KEPT
"""Bytes of a first line of JSON that may hold a list of records: it is looked at whole."""
JQ = "jq -c '{}' FILE > NEW"
"""What takes JSON apart, an object a line."""
ICONV = "iconv -f {} -t UTF-8 FILE > NEW"
"""What makes UTF-8 of another encoding."""
HOW = {b"\x1f\x8b": ("gzip", ".gz"), b"\x28\xb5\x2f\xfd": ("zstd", ".zst")}
"""How a compressed file begins, and how its name ends then."""


@dataclass(frozen=True)
class Sample:
    """The first lines of a file.

    Attributes:
        lines: without their ends; none is empty.
        other: lines that are not in UTF-8; a job refuses them.
        whole: whether the file has no others.
    """

    path: Path
    lines: tuple[str, ...]
    whole: bool
    other: tuple[bytes, ...] = ()


def read_sample(path: Path, most: int = MOST, longest: int = LONGEST) -> Sample:
    """Reads the beginning of a log.

    Args:
        most: decompressed bytes that are read; of a line that is cut there nothing is taken.
        longest: the same, of a first line of JSON.

    Raises:
        Refusal: the file is not there, a folder, empty, binary, or compressed in a way that its name does
            not say.
    """
    data, whole = _beginning(path, most)
    begins = data.removeprefix(MARK).lstrip()[:1]
    if not whole and begins == b"{" and b"\n" not in data:
        most = longest
        data, whole = _beginning(path, most)
    data = data.removeprefix(MARK)
    _refuse_utf16(path, data)
    nul = data.find(b"\0")
    if nul >= 0:
        raise Refusal(f"{path}: must be text, a line a record; got a binary file, with a zero byte at {nul}")
    if not whole:
        cut = data.rfind(b"\n") + 1
        if not cut:
            records = {b"{": ".Records[]", b"[": ".[]"}.get(begins)
            advice = f"; of JSON, make an object a line: {JQ.format(records)}" if records else ""
            raise Refusal(f"{path}: a line must end within {most} bytes; the first one is longer{advice}")
        data = data[:cut]
    lines, other = [], []
    for line in data.split(b"\n"):
        plain = line.removesuffix(b"\r")
        try:
            lines += [plain.decode()] if plain else []
        except UnicodeDecodeError:
            other.append(plain)
    if not lines and not other:
        blank = "has blank lines alone" if data else "is empty"
        raise Refusal(f"{path}: must hold a line; it {blank}")
    sample = Sample(path, tuple(lines), whole, tuple(other))
    if len(other) > len(lines):
        raise Refusal(not_utf8(sample))
    return sample


def not_utf8(sample: Sample) -> str:
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
    head = data[:1000]
    for encoding, mark, zeros in (
        ("UTF-16LE", b"\xff\xfe", head[1::2]),
        ("UTF-16BE", b"\xfe\xff", head[::2]),
    ):
        marked = head.startswith(mark)
        if marked or (
            len(zeros) > 4 and zeros.count(0) > 0.8 * len(zeros) and head.count(0) < 0.6 * len(head)
        ):
            name = "UTF-16" if marked else encoding
            raise Refusal(f"{path}: must be text in UTF-8; it is in {name}. Make it so: {ICONV.format(name)}")


def _beginning(path: Path, most: int) -> tuple[bytes, bool]:
    """The first bytes of a file, decompressed, and whether they are all."""
    if path.is_dir():
        raise Refusal(f"{path}: must be a file; it is a folder, name the files in it")
    if not path.exists():
        raise Refusal(f"{path}: there is no such file")
    tally = Tally(())
    data, whole = bytearray(), True
    try:
        with path.open("rb") as source:
            for start, (kind, ending) in HOW.items():
                if source.read(len(start)) == start and not path.name.endswith(ending):
                    raise Refusal(f"{path}: is {kind}, so its name must end in {ending}")
                source.seek(0)
            for piece in decompressed(source, path.name, tally):
                data += piece
                if len(data) > most:
                    whole = False
                    break
    except OSError as error:
        raise Refusal(f"{path}: cannot be read: {error.strerror}") from None
    if tally.broken is not None and not data:
        kind = "gzip" if path.name.endswith(".gz") else "zstd"
        raise Refusal(f"{path}: must be {kind}, as its name says; {': '.join(tally.broken)}")
    return bytes(data[:most]), whole
