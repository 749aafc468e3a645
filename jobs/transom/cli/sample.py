"""The first lines of a log, and why a file is none."""

from dataclasses import dataclass
from pathlib import Path

from transom.cli.asked import Refusal
from transom.formats.lines import KEPT, MARK, Tally, decompressed

MOST = 2**20
"""Decompressed bytes of a file that are looked at."""
LONGEST = KEPT
"""Bytes of a first line of JSON that may hold a list of records: it is looked at whole."""
JQ = "jq -c '{}' FILE > NEW"
"""What takes JSON apart, an object a line."""
HOW = {b"\x1f\x8b": ("gzip", ".gz"), b"\x28\xb5\x2f\xfd": ("zstd", ".zst")}
"""How a compressed file begins, and how its name ends then."""


@dataclass(frozen=True)
class Sample:
    """The first lines of a file.

    Attributes:
        lines: without their ends; none is empty.
        whole: whether the file has no others.
    """

    path: Path
    lines: tuple[str, ...]
    whole: bool


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
    wrong = 0
    lines = []
    for line in data.split(b"\n"):
        text = line.removesuffix(b"\r").decode("utf-8", "replace")
        wrong += "\ufffd" in text
        if text:
            lines.append(text)
    if not lines:
        raise Refusal(f"{path}: must hold a line; it is empty")
    if wrong * 2 > len(lines):
        raise Refusal(f"{path}: must be text in UTF-8; {wrong} of {len(lines)} lines are not")
    return Sample(path, tuple(lines), whole)


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
