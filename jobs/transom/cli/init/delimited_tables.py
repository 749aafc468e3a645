"""Split lines into the rows of a table, by every delimiter that may have made them."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from transom.cli.init.log_format import MIN_SHARE, mostly
from transom.formats.record_format import BLANKS
from transom.formats.separated import Separated

CLOCK_COMMA = re.compile(r"(?<![0-9])[0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3}(?:[0-9]{3})?(?=[^0-9,\"])")
"""A time of day with a decimal comma; this comma is no delimiter."""
DELIMITERS = ("\t", ";", ",", "|", " ", BLANKS)
OF_BLANKS = DELIMITERS[-2:]
"""Delimiters of blanks: exactly one, and any number."""
SIGNS = re.compile(r"( ?)(\t|[|;:~^¦§]{1,3})(?![|;:~^¦§])")
"""A possible delimiter of several characters, or with blanks around."""
COMMAS = (",", ";")
"""Delimiters that may have a blank after them, also in prose."""
SINGLE_QUOTED = re.compile(r"(?:^|[\t,;|]) ?'[^']*' ?(?=[\t,;|]|$)")
"""A value in single quotes."""
COMMENTS = ("#", "//", "%", "!")
"""Prefixes of comment lines."""
MAX_LINES_ABOVE = 50
"""Maximum number of lines above the first record."""


@dataclass(frozen=True)
class DelimitedTable:
    """Lines as rows of the same number of values.

    Attributes:
        quote: the character around values.
        trim: whether blanks around values are removed.
        rows: the rows; lines with another number of values are omitted.
        places: the line number of each row, from 1.
        above: the number of lines before the first row that are no comments.
        share: the share of rows among the lines after those, without comments.
        comment: the prefix of comment lines; empty if there are none.
        comments: the texts of comment lines by line number, from 1.
    """

    delimiter: str
    quote: str
    trim: bool
    rows: list[list[str]]
    places: list[int]
    above: int
    share: float
    comment: str
    comments: dict[int, str]

    @property
    def is_spaced(self) -> bool:
        """Whether a delimiter has blanks on both sides."""
        return self.trim and self.delimiter not in COMMAS

    def only_comments(self, start: int, stop: int) -> bool:
        """Return whether all lines from `start` to `stop` (exclusive) are comments."""
        return self.comments.keys() >= {*range(start, stop)}


def tables_of(lines: Sequence[str]) -> list[DelimitedTable]:
    """Return the table for each delimiter; of the two delimiters of blanks, only the better one."""
    single = mostly(SINGLE_QUOTED.search(line) is not None for line in lines)
    quote = "'" if single and not mostly('"' in line for line in lines) else '"'
    tables = {delimiter: _table_of(lines, delimiter, quote) for delimiter in DELIMITERS}
    tables |= _unusual_tables(lines, quote)
    if mostly(CLOCK_COMMA.search(line) is not None for line in lines):
        tables[","] = None
    for comma in COMMAS:
        plain = tables[comma]
        if plain is not None and mostly(f"{comma} " in line for line in lines):
            trimmed = _table_of(lines, comma, quote, trim=True)
            # Values in quotes may have such a blank, too.
            tables[comma] = trimmed if trimmed is None or trimmed.rows != plain.rows else plain
    one, several = (tables[blanks] for blanks in OF_BLANKS)
    if one is not None and several is not None:
        # Prefer any number of blanks, unless exactly one yields more rows, or the same.
        empty = any(not any(column) for column in zip(*one.rows[1:], strict=True))
        aligned = empty or (several.share >= one.share and several.rows != one.rows)
        tables[OF_BLANKS[not aligned]] = None
    return [table for table in tables.values() if table is not None]


def _unusual_tables(lines: Sequence[str], quote: str) -> dict[str, DelimitedTable | None]:
    """Return tables by delimiters of several characters, or with blanks around; None for a sign of those that
    is no delimiter by itself."""
    tables: dict[str, DelimitedTable | None] = {}
    found = [{(sign[2], _has_blanks(sign)) for sign in SIGNS.finditer(line)} for line in lines]
    alone = {sign for of_line in found for sign, _ in of_line}
    for sign in sorted(alone - {":"}):
        if trim := mostly((sign, True) in of_line for of_line in found):
            # Some delimiters have a blank on one side only.
            tried = [_table_of(lines, delimiter, quote, trim=True) for delimiter in (f" {sign} ", sign)]
        elif len(sign) > 1 and mostly((sign, False) in of_line for of_line in found):
            tried = [_table_of(lines, sign, quote)]
        else:
            continue
        fitting = [table for table in tried if table is not None and table.share >= MIN_SHARE]
        if fitting:
            tables[f" {sign} " if trim else sign] = max(fitting, key=lambda table: len(table.rows))
            tables |= dict.fromkeys(one for one in sign if one == sign or one not in alone)
    return tables


def _has_blanks(sign: re.Match[str]) -> bool:
    """Return whether a sign has a blank on both sides; the end of a line counts as one."""
    return sign[1] == " " and sign.string[sign.end(2) :][:1] in ("", " ")


def _table_of(
    lines: Sequence[str], delimiter: str, quote: str, *, trim: bool = False
) -> DelimitedTable | None:
    """Return lines as a table; None if most of them have a single value."""
    parts = Separated(delimiter, quote, trim=trim)
    numbered = list(enumerate(lines, 1))
    for comment in (*(sign for sign in COMMENTS if any(line.startswith(sign) for line in lines)), ""):
        marked = [(number, line) for number, line in numbered if comment and line.startswith(comment)]
        comments = {number: line.removeprefix(comment).lstrip(" ") for number, line in marked}
        if len(comments) > len(lines) / 2:
            continue
        read = {number: parts.split_line(line) for number, line in numbered if number not in comments}
        widths = Counter(len(row) for row in read.values() if row is not None)
        width = max(widths, key=lambda width: (widths[width], width), default=0)
        if width < 2:
            continue
        rows = {number: row for number, row in read.items() if row is not None and len(row) == width}
        places = list(rows)
        below = (text for number, text in comments.items() if number > places[0])
        above = sum(number < places[0] for number in read)
        # Values may also begin with a comment's prefix.
        if above <= MAX_LINES_ABOVE and all(len(parts.split_line(text) or ()) != width for text in below):
            share = len(rows) / (len(read) - above)
            return DelimitedTable(
                delimiter, quote, trim, [*rows.values()], places, above, share, comment, comments
            )
    return None
