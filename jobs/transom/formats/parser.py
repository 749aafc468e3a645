"""The base of the parsers: from lines to records, the names in them, and the rest that no column uses."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, takewhile
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.record_format import RecordFormat
from transom.formats.rejections import Int64s, Mask, Rejections, mask, null_where

MAX_NAMES = 100
"""Maximum number of unknown names of a file: the first ones in sorted order."""
LONGEST_NAME = 200
"""Maximum number of characters of an unknown name; the others are cut."""
CONTROL = "[\x00-\x1f]"
"""The characters that JSON must escape, in addition to the quote and the backslash."""


class FieldDrift:
    """The names in a file's records so far, independent of order and threads.

    Attributes:
        paths: the declared paths.
        any_record: whether a record has been observed.
    """

    def __init__(self, layout: RecordFormat, nested: bool = False) -> None:
        """Create it empty. With `nested`, paths lead through objects; the names of these count as known."""
        self._columns = {field.name: field.paths for field in layout.fields}
        self.paths = layout.paths
        parts = {path[:at] for path in self.paths for at, letter in enumerate(path) if letter == "."}
        self._known = self.paths | parts if nested else self.paths
        # Zeek's clusters and log shippers add fields of their own: _path, _write_ts, _system_name.
        self._may_be_added = layout.format == "zeek"
        self._observed: set[str] = set()
        self._unknown: set[str] = set()
        self.any_record = False
        self._lock = Lock()

    def observe(self, names: Iterable[str], declared: bool = False) -> None:
        """Record the names in some records.

        Args:
            names: the names of fields, and declared paths with a value.
            declared: whether the specification has these names, so that none can be unknown.
        """
        with self._lock:
            self.any_record = True
            for name in names:
                if name in self.paths:
                    self._observed.add(name)
                elif not (declared or name in self._known or (self._may_be_added and name.startswith("_"))):
                    self._unknown.add(name[:LONGEST_NAME])
            if len(self._unknown) > 10 * MAX_NAMES:
                self._unknown = set(self.unknown)

    def unobserved(self, paths: Iterable[str]) -> list[str]:
        """Return the paths that no record has had so far."""
        return [path for path in paths if path not in self._observed]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names that no column and no time uses, sorted, at most `MAX_NAMES`."""
        return tuple(sorted(self._unknown)[:MAX_NAMES])

    @property
    def absent(self) -> tuple[str, ...]:
        """Declared columns without a path in any record; empty if there is no record."""
        columns = self._columns.items() if self.any_record else ()
        return tuple(name for name, paths in columns if not self._observed.intersection(paths))


@dataclass(frozen=True)
class ParsedRecords:
    """The result of a parser for some lines.

    Attributes:
        fields: every field of every line, as text or typed.
        rest: the undeclared fields of each line; None if `fields` has all fields, so that `rest_of`
            can compute it.
    """

    fields: Mapping[str, pa.Array]
    rest: pa.Array | None = None


class Parser(ABC):
    """One format. By default, its header lines are those that begin with the option `comment`, if it has one.

    Attributes:
        drift: the names in the file's records.
    """

    _comment: str = ""

    def __init__(self, layout: RecordFormat) -> None:
        self.drift = FieldDrift(layout)
        self._comment = str(layout.options.get("comment", ""))

    @property
    def columns(self) -> frozenset[str]:
        """The field names in header lines so far."""
        return frozenset()

    def header_starts(self, text: pa.Array) -> Int64s:
        """Return the lines, in addition to the first, that may begin a run of header lines."""
        return run_starts(self._comments(text))

    def read_header(self, line: str | None) -> bool:
        """Return whether a line is a header line, and apply what it declares."""
        return self._comment != "" and line is not None and line.startswith(self._comment)

    def _comments(self, text: pa.Array) -> Mask:
        """Return which lines begin with `comment`."""
        if not self._comment:
            return np.zeros(len(text), dtype=bool)
        return mask(pc.starts_with(text, self._comment))

    def bodies(self, text: pa.Array) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of each range between header lines, after reading these."""
        for start, end in pairwise(sorted({0, *self.header_starts(text).tolist(), len(text)})):
            headers = takewhile(self.read_header, (line.as_py() for line in text[start:end]))
            yield start + sum(1 for _ in headers), end

    def parts(self, text: pa.Array) -> Iterable[pa.Array]:
        """Return the lines in consecutive parts, each of which `parse` reads in one way."""
        return [text]

    @abstractmethod
    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return the records of lines; add lines of another form to `refused`."""

    def parse_as_text(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return the same as `parse`, with every field as text."""
        return self.parse(text, refused)


def run_starts(flags: Mask) -> Int64s:
    """Return the first line of each run of lines with a flag.

    >>> run_starts(np.array([True, True, False, True])).tolist()
    [0, 3]
    """
    return np.flatnonzero(flags & ~np.r_[False, flags[:-1]])


def rest_of(fields: Mapping[str, pa.Array], declared: frozenset[str], rows: int) -> pa.Array:
    """Return the undeclared fields of each line as JSON; null if none has a value.

    >>> fields = {"client": pa.array(["a", "b"]), "agent": pa.array(["curl", None])}
    >>> rest_of(fields, frozenset({"client"}), rows=2).to_pylist()
    ['{"agent":"curl"}', None]
    """
    parts = [json_members(f",{json_name(name)}", fields[name]) for name in sorted(fields.keys() - declared)]
    if not parts:
        return pa.nulls(rows, pa.string())
    # Arrow's join that skips nulls would return no row if there are only nulls.
    joined = pc.binary_join_element_wise(*(pc.fill_null(part, "") for part in parts), "")
    return json_objects(pc.utf8_slice_codeunits(joined, 1))


def json_name(name: str) -> str:
    """Return a text as JSON."""
    return json.dumps(name, ensure_ascii=False)


def json_members(name: str | pa.Array, values: pa.Array) -> pa.Array:
    """Return each value as a member of an object, `"name":"value"`; null stays null."""
    values = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(values, CONTROL)).as_py():
        for code in range(32):
            values = pc.replace_substring(values, chr(code), json.dumps(chr(code))[1:-1])
    return pc.binary_join_element_wise(name, ':"', values, '"', "")


def json_objects(members: pa.Array) -> pa.Array:
    """Return members as an object; null if there are none."""
    return pc.binary_join_element_wise("{", null_where(pc.equal(members, ""), members), "}", "")
