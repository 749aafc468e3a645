"""The plain parser of values with a delimiter between them: CSV, and Zeek's own format."""

import csv
import re

from tests.formats.reference_lines import LONGEST_LINE, Found, Refused, read_paths, text_of, unread_fields
from transom.formats.delimited import ONCE
from transom.formats.record_format import RecordFormat


class Csv:
    """Values with a delimiter between them; a record is a line.

    The names are in the options, or in the first line that is not empty after those of `skip`, or in line
    number `header`. If that line cannot be read, it and all others have no header. The lines of `skip`, the
    lines above the header, and those that begin with `comment` are no records.

    A quote counts at the start of a value, up to the next quote that is not doubled; text after it up to the
    delimiter belongs to the value as well. An empty value is missing, quoted or not: a file with quotes
    everywhere cannot express the difference. With the delimiter `blanks`, any number of blanks and tabs
    separates values. With `trim` blanks around values are removed, and two delimiters may share a blank; the
    ends of the line count as blanks. If two columns that are read have one name, every line is rejected; of
    other duplicates the last one counts.
    """

    def __init__(self, layout: RecordFormat) -> None:
        self.layout = layout
        options = layout.options
        self.named = options.get("header", True) is False
        self.delimiter = str(options.get("delimiter", ","))
        self.quote = str(options.get("quote", '"'))
        self.trim = options.get("trim") is True
        header, skip = options.get("header", True), options.get("skip", 0)
        assert isinstance(skip, int)
        self.awaits_header = header is True
        self.header = header if isinstance(header, int) and not isinstance(header, bool) else 0
        self.skip = max(skip, self.header)
        self.comment = options.get("comment")
        self.line = 0
        names = options.get("names")
        self.names = [str(name) for name in names] if isinstance(names, list | tuple) else None
        self.columns = set(self.names or ())

    def name(self, text: str) -> None:
        self.names, self.columns = None, set()
        if self.comment is not None and text.startswith(str(self.comment)):
            text = text.removeprefix(str(self.comment)).lstrip(" ")
        try:
            self.names = self.values(text)
        except Refused:
            raise Refused("no_header") from None
        self.columns = set(self.names)

    def record(self, line: object) -> Found | None:
        self.line += 1
        if self.line <= self.skip:
            if self.line == self.header:
                try:
                    self.name(text_of(line))
                except Refused:
                    self.names, self.columns = None, set()
            return None
        if self.comment is not None:
            try:
                if text_of(line).startswith(str(self.comment)):
                    return None
            except Refused:
                pass
        if line and self.awaits_header:
            self.awaits_header = False
            self.names = None
            self.columns = set()
            self.name(text_of(line))
            return None
        text = text_of(line)
        if self.names is None:
            raise Refused("no_header")
        once(self.names, self.layout)
        values = self.values(text)
        if len(values) != len(self.names):
            raise Refused("field_count", len(values), expected=f"{len(self.names)}")
        fields = {name: value or None for name, value in zip(self.names, values, strict=True)}
        names = set(self.names)
        return Found(fields, names, names if self.named else set(), unread_fields(fields, self.layout))

    def values(self, text: str) -> list[str]:
        if self.delimiter == "blanks":
            return self.aligned(text)
        if self.trim or len(self.delimiter) > 1:
            return self.by_text(text)
        # The library's reader ends a line at a carriage return. Here it is an ordinary character, so another
        # one that the line does not contain replaces it.
        stand_in = next(char for char in map(chr, range(0xE000, 0xF8FF)) if char not in text)
        # A second line follows, which a reader that waits for a closing quote swallows.
        csv.field_size_limit(LONGEST_LINE)
        reader = csv.reader(
            [text.replace("\r", stand_in), ""], delimiter=self.delimiter, quotechar=self.quote
        )
        values = next(reader)
        if reader.line_num > 1:
            raise Refused("unterminated_quote")
        return [value.replace(stand_in, "\r") for value in values]

    def by_text(self, text: str) -> list[str]:
        """Letter by letter."""
        core, before, after = self.delimiter, "", ""
        if self.trim:
            core = self.delimiter.strip(" ")
            before, _, after = self.delimiter.partition(core)

        def ends(at: int) -> bool:
            if not text.startswith(core, at):
                return False
            left, right = text[:at], text[at + len(core) :]
            return (not before or left[-1:] in ("", " ")) and (not after or right[:1] in ("", " "))

        values, at = [], 0
        while True:
            value = ""
            while self.trim and text[at : at + 1] == " ":
                at += 1
            if text[at : at + 1] == self.quote:
                value, at = self._quoted(text, at + 1)
            tail = ""
            while at < len(text) and not ends(at):
                tail += text[at]
                at += 1
            values.append(value + (tail.rstrip(" ") if self.trim else tail))
            if at == len(text):
                return values
            at += len(core)

    def _quoted(self, text: str, at: int) -> tuple[str, int]:
        """Return the text from after an opening quote to its end, and the place after the closing quote."""
        value = ""
        while text[at : at + 2] == 2 * self.quote or text[at : at + 1] not in ("", self.quote):
            value += text[at]
            at += 2 if text[at] == self.quote else 1
        if at == len(text):
            raise Refused("unterminated_quote")
        return value, at + 1

    def aligned(self, text: str) -> list[str]:
        """Letter by letter."""
        values, at = [], 0
        while at < len(text):
            if text[at] in " \t":
                at += 1
                continue
            value = ""
            if text[at] == self.quote:
                value, at = self._quoted(text, at + 1)
            while at < len(text) and text[at] not in " \t":
                value += text[at]
                at += 1
            values.append(value)
        return values


def once(names: list[str], layout: RecordFormat) -> None:
    """Refuses a line under a header that has a name twice which is used."""
    for name in names:
        if name in read_paths(layout) and names.count(name) > 1:
            raise Refused("ambiguous_header", name, name, ONCE)


class ZeekTsv:
    """Values with a separator between them. Lines that begin with # are header lines anywhere.

    `#separator` (with \\xNN for a character), `#unset_field`, `#empty_field` and `#fields` apply from there
    on; other header lines are ignored. An unset value is missing, an empty one is the empty text. Of two
    columns with one name the last counts. Values are unchanged.
    """

    def __init__(self, layout: RecordFormat) -> None:
        self.layout = layout
        self.columns: set[str] = set()
        self.separator, self.unset, self.empty = "\t", "-", "(empty)"
        self.names: list[str] | None = None

    def record(self, line: object) -> Found | None:
        text = text_of(line)
        if text.startswith("#"):
            self.directive(text)
            return None
        if self.names is None:
            raise Refused("no_header")
        once(self.names, self.layout)
        values = text.split(self.separator)
        if len(values) != len(self.names):
            raise Refused("field_count", len(values), expected=f"{len(self.names)}")
        fields = {name: self.value(value) for name, value in zip(self.names, values, strict=True)}
        return Found(fields, set(self.names), set(), unread_fields(fields, self.layout))

    def value(self, text: str) -> str | None:
        if text == self.unset:
            return None
        return "" if text == self.empty else text

    def directive(self, text: str) -> None:
        if text.startswith("#separator "):
            written = text.removeprefix("#separator ")
            self.separator = (
                re.sub(r"\\x([0-9a-fA-F]{2})", lambda code: chr(int(code[1], 16)), written) or "\t"
            )
            return
        name, *values = text.split(self.separator)
        if name == "#fields":
            self.names = values
            self.columns |= set(values)
        elif name == "#unset_field" and values:
            self.unset = values[0]
        elif name == "#empty_field" and values:
            self.empty = values[0]
