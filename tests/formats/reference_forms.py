"""The plain parser of a log: from a line of each format to its fields."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Protocol

from tests.formats.reference_json import Json
from tests.formats.reference_lines import LONGEST_LINE, Found, Refused, read_paths, text_of, unread_fields
from transom.formats.delimited import ONCE
from transom.formats.record_format import RecordFormat


class Form(Protocol):
    columns: set[str]

    def record(self, line: object) -> Found | None:
        """Return the content of a line; None for a header line."""


def form_of(layout: RecordFormat, cut: Sequence[bytes]) -> Form:
    if layout.format == "apache":
        return Apache(layout)
    if layout.format == "csv":
        return Csv(layout)
    if layout.format == "json":
        return Json(layout)
    if layout.format == "regex":
        return Regex(layout)
    if layout.format == "kv":
        return KeyValue(layout)
    if layout.format == "syscalls":
        return Syscalls(layout)
    variant = layout.options.get("variant", "auto")
    if variant == "auto":
        # The first line that is not empty decides: Zeek's own format begins with header lines.
        first = next(filter(None, cut), b"")
        variant = "json" if first.lstrip().startswith(b"{") else "tsv"
    return Json(layout) if variant == "json" else ZeekTsv(layout)


class Apache:
    """`client ident user [time] "request" status bytes`, and in the combined format `"referer" "agent"`.

    Inside quotes a backslash escapes the next character. Values are unchanged, with their backslashes. A dash
    is no value, except where it is the client, the time or the request.
    """

    QUOTED = r'((?:[^"\\]|\\.)*)'
    COMMON = re.compile(
        r"([^ \t\f\r]+) ([^ \t\f\r]+) (.*?) \[([^\]]*)\] "
        rf'"{QUOTED}" ([0-9][0-9][0-9]) ([0-9]+|-)(?: "{QUOTED}" "{QUOTED}")?'
    )
    NAMES = ("client", "ident", "user", "time", "request", "status", "bytes", "referer", "agent")
    REQUEST = re.compile(r"([^ ]+) (.*) (HTTP/[0-9.]+)")

    def __init__(self, layout: RecordFormat) -> None:
        self.layout = layout
        self.columns: set[str] = set()
        self.common_only = layout.options.get("variant") == "common"

    def record(self, line: object) -> Found | None:
        result = self.COMMON.fullmatch(text_of(line))
        if result is None or (self.common_only and result[8] is not None):
            forms = "common log form" if self.common_only else "common or the combined log form"
            raise Refused("no_match", expected=f"the {forms}")
        fields = dict(zip(self.NAMES, result.groups(), strict=True))
        for name in ("ident", "user", "bytes", "referer", "agent"):
            if fields[name] == "-":
                fields[name] = None
        request = self.REQUEST.fullmatch(fields["request"] or "")
        parts = request.groups() if request else (None, None, None)
        fields |= dict(zip(("method", "path", "protocol"), parts, strict=True))
        shown = fields.keys() - ({"referer", "agent"} if result[8] is None else set())
        return Found(fields, shown, shown, unread_fields(fields, self.layout))


class Csv:
    """Values with a delimiter between them; a record is a line.

    The names are in the options, or in the first line that is not empty after those of `skip`, or in line
    number `header`. If that line cannot be read, it and all others have no header. The lines of `skip`, the
    lines above the header, and those that begin with `comment` are no records.

    A quote counts at the start of a value, up to the next quote that is not doubled; text after it up to the
    delimiter belongs to the value as well. An empty value is missing, quoted or not: a file with quotes
    everywhere cannot express the difference. With the delimiter `blanks`, any number of blanks and tabs
    separates values. If two columns that are read have one name, every line is rejected; of other duplicates
    the last one counts.
    """

    def __init__(self, layout: RecordFormat) -> None:
        self.layout = layout
        options = layout.options
        self.named = options.get("header", True) is False
        self.delimiter = str(options.get("delimiter", ","))
        self.quote = str(options.get("quote", '"'))
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

    def aligned(self, text: str) -> list[str]:
        """Letter by letter."""
        values, at = [], 0
        while at < len(text):
            if text[at] in " \t":
                at += 1
                continue
            value = ""
            if text[at] == self.quote:
                at += 1
                while text[at : at + 2] == 2 * self.quote or text[at : at + 1] not in ("", self.quote):
                    value += text[at]
                    at += 2 if text[at] == self.quote else 1
                if at == len(text):
                    raise Refused("unterminated_quote")
                at += 1
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


class Regex:
    """Named groups; the whole line has to match. A group without a match, or an empty one, has no value."""

    def __init__(self, layout: RecordFormat) -> None:
        self.layout = layout
        self.columns: set[str] = set()
        self.pattern = re.compile(str(layout.options["pattern"]), re.ASCII)

    def record(self, line: object) -> Found | None:
        text = text_of(line)
        result = self.pattern.fullmatch(text)
        if result is None:
            raise Refused("no_match", *self.stop(text))
        fields = {name: value or None for name, value in result.groupdict().items()}
        return Found(fields, set(fields), set(fields), unread_fields(fields, self.layout))

    def stop(self, text: str) -> tuple[str, None, str]:
        """Return the rest after the longest prefix of a line that a prefix of the pattern matches, and the
        next part of the pattern. Only for patterns without an alternative outside of groups.
        """
        pattern = self.pattern.pattern
        cuts = [at for at in range(len(pattern) + 1) if is_part(pattern[:at]) and is_part(pattern[at:])]
        fits = [re.compile(pattern[:at], re.ASCII).match(text) for at in cuts]
        last = max(number for number, result in enumerate(fits) if result is not None)
        result = fits[last]
        assert result is not None
        parts = [pattern[low:high] for low, high in pairwise([*cuts[last:], len(pattern)])]
        letters = list(takewhile(lambda part: re.fullmatch("[a-z= ]", part), parts))
        following = "".join(letters) or "".join(parts[:1])
        rest = text[result.end() :] or "nothing"
        if following and not following.strip(" "):
            following = "a blank"
        return f"left over: {rest}", None, following or "the end of the line"


def is_part(pattern: str) -> bool:
    """Return whether a text is a pattern of its own, without repeating another part."""
    try:
        re.compile(pattern)
    except re.error:
        return False
    return pattern[:1] not in ("?", "*", "+", "{")


@dataclass
class Word:
    """A word with its end position, and the name and the value of a pair."""

    text: str
    end: int
    name: str | None = None
    value: str = ""


def words(text: str, separators: str, assign: str, quote: str) -> Iterator[Word]:
    """Return the words of a line, letter by letter.

    A word with an assign sign after its first letter is a pair. A quote opens only at the start of its value;
    separators before the closing quote belong to the value. Two quotes inside are one, a quote after a
    backslash is one, and two backslashes are one. Text after the closing quote belongs to the value too.
    """
    at = 0
    while at < len(text):
        start = at
        while at < len(text) and text[at] not in separators + assign:
            at += 1
        if at == start and at < len(text) and text[at] in separators:
            at += 1
            continue
        if at == start or at == len(text) or text[at] in separators:
            while at < len(text) and text[at] not in separators:
                at += 1
            yield Word(text[start:at], at)
            continue
        name, value = text[start:at].lstrip(" "), ""
        at += 1
        if text[at : at + 1] == quote:
            at += 1
            while text[at : at + 1] != quote or text[at + 1 : at + 2] == quote:
                if at >= len(text):
                    raise Refused("unterminated_quote")
                both = text[at : at + 2]
                selected = 2 if both in (quote * 2, "\\" + quote, "\\\\") else 1
                value += both[-1] if selected == 2 else both[0]
                at += selected
            at += 1
        while at < len(text) and text[at] not in separators:
            value += text[at]
            at += 1
        yield Word(text[start:at], at, name or None, value)


def firsts(pairs: Iterable[Word]) -> dict[str, str | None]:
    """Return values by name; the first one counts, and an empty one is no value."""
    fields: dict[str, str | None] = {}
    for pair in pairs:
        if pair.name is not None:
            fields.setdefault(pair.name, pair.value or None)
    return fields


class KeyValue:
    """Leading words between separators, then pairs; other words are ignored."""

    def __init__(self, layout: RecordFormat) -> None:
        self.layout = layout
        self.columns: set[str] = set()
        options = {"separator": " \t", "assign": "=", "quote": '"', **layout.options}
        self.signs = [str(options[name]) for name in ("separator", "assign", "quote")]
        lead = options.get("lead", [])
        assert isinstance(lead, list)
        self.lead = [str(name) for name in lead]

    def record(self, line: object) -> Found | None:
        rest, own = text_of(line), dict[str, str | None]()
        expected = f"a line with name{self.signs[1]}value in it"
        if self.lead:
            expected += f", behind {' '.join(self.lead)}"
        for name in self.lead:
            rest = rest.lstrip(self.signs[0])
            length = next((at for at, letter in enumerate(rest) if letter in self.signs[0]), None)
            if length is None:
                raise Refused("no_match", expected=expected)
            own[name], rest = rest[:length].strip(" ") or None, rest[length:]
        pairs = firsts(words(rest, *self.signs))
        if not pairs:
            raise Refused("no_match", expected=expected)
        given = {name: value for name, value in pairs.items() if name not in own}
        shown = {name for name, value in own.items() if value is not None}
        fields = dict.fromkeys(read_paths(self.layout)) | given | own
        return Found(fields, shown | given.keys(), shown, unread_fields(given | own, self.layout))


class Syscalls:
    """Leading words, a name, pairs, and the result of the call after `=>`."""

    def __init__(self, layout: RecordFormat) -> None:
        self.layout = layout
        self.columns: set[str] = set()
        lead = layout.options.get("lead", [])
        assert isinstance(lead, list)
        self.heads = [*map(str, lead), "call"]

    def record(self, line: object) -> Found | None:
        text = text_of(line)
        form = " ".join([*self.heads[:-1], "name [arg=value ...] [=> return]"])
        own: dict[str, str | None] = dict.fromkeys([*self.heads, "return"])
        arguments = []
        for index, word in enumerate(words(text, " \t", "=", '"')):
            if index < len(self.heads):
                own[self.heads[index]] = word.text
                if self.heads[index] == "call" and set('="') & set(word.text):
                    raise Refused("no_match", expected=form)
            elif word.text == "=>":
                own["return"] = text[word.end :].strip(" \t") or None
                break
            elif word.name is None:
                raise Refused("no_match", expected=form)
            else:
                arguments.append(word)
        if own["call"] is None:
            raise Refused("no_match", expected=form)
        given = {name: value for name, value in firsts(arguments).items() if name not in own}
        shown = {name for name, value in own.items() if value is not None}
        fields = dict.fromkeys(read_paths(self.layout)) | given | own
        return Found(fields, shown | given.keys(), shown, unread_fields(given | own, self.layout))
