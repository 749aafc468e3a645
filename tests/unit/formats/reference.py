"""The plain reading of a log, record by record: what the vectorised parsers have to give.

A file's bytes are cut into lines. Each line is an event, a rejection or a header line, and nothing that
a file holds raises. A line is refused for the first of: its own form, its time, its columns in the order
in which they are declared, the span that its file may hold.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Protocol
from zoneinfo import ZoneInfo

from transom.formats.layout import EventTime, Field, Layout, Span

LONGEST_LINE = 2**20
DEEPEST_JSON = 100
LARGEST_INTEGER = 2**53
MOST_STEPS = 2**50
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC)
LONGEST_ADDED = 1_000_000_000

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
INTEGER = re.compile(r"[+-]?[0-9]+")
TRUE, FALSE = {"true", "True", "TRUE", "T", "1"}, {"false", "False", "FALSE", "F", "0"}
EPOCHS = {"epoch": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1}

Record = Mapping[str, str | None]
"""A line's fields by path, as text; None where the line says that there is no value."""


class Refused(Exception):
    """The line is no event.

    Attributes:
        detail: the reason in words, and the value that it is about, where it is about one.
    """

    def __init__(
        self,
        reason: str,
        value: object = None,
        column: str | None = None,
        expected: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.column = column
        said = [reason.replace("_", " ")]
        said += [] if value is None else [f": {str(value)[:200]}"]
        said += [] if expected is None else [f"; expected {expected}"]
        self.detail = "".join(said) if said[1:] else None


@dataclass
class Reading:
    """What a file gave: (line, event_time, columns), (line, reason, column, detail), and header lines."""

    events: list[tuple[int, datetime, dict[str, object]]] = field(default_factory=list)
    rejections: list[tuple[int, str, str | None, str | None]] = field(default_factory=list)
    header_lines: int = 0
    columns: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)


@dataclass
class Found:
    """What a line is.

    Attributes:
        fields: by path.
        shown: names that the record has, whether with a value or without.
        own: those of them that the format or the specification names, and not the file.
        rest: what the record holds beside the columns and the time.
    """

    fields: Record
    shown: set[str]
    own: set[str]
    rest: str | None


def read(data: bytes, layout: Layout, span: Span | None = None, start: datetime | None = None) -> Reading:
    """Reads a whole file."""
    cut: Sequence[bytes | Json.Value | Refused] = lines(data)
    form = form_of(layout, lines(data))
    if "records" in layout.options:
        assert isinstance(form, Json)
        cut = [record for line in lines(data) for record in form.records(line)]
    reading = Reading()
    shown: set[str] = set()
    brought: set[str] = set()
    records = 0
    for number, line in enumerate(cut, 1):
        try:
            if isinstance(line, Refused):
                raise line
            found = form.record(line)
            if found is None:
                reading.header_lines += 1
                continue
            records += 1
            record = found.fields
            shown |= found.shown
            brought |= found.shown - found.own
            time = event_time(record, layout, number, start)
            columns = {column.name: value_of(record, column) for column in layout.fields}
            if layout.keep_rest:
                columns["rest"] = found.rest
            if span is not None and not span.start <= time < span.end:
                inside = f"{span.start:%Y-%m-%d %H:%M:%S}Z to {span.end:%Y-%m-%d %H:%M:%S}Z"
                raise Refused("outside_holds", f"{time:%Y-%m-%d %H:%M:%S.%f}Z", expected=inside)
            reading.events.append((number, time, columns))
        except Refused as refused:
            reading.rejections.append((number, refused.reason, refused.column, refused.detail))
    reading.columns = form.columns
    taken = wanted(layout)
    if isinstance(form, Json):
        taken |= {name for name in brought if any(path.startswith(f"{name}.") for path in taken)}
    reading.unknown = sorted({name[:200] for name in brought - taken})[:100]
    if records:
        reading.absent = [column.name for column in layout.fields if not shown.intersection(column.paths)]
    return reading


def wanted(layout: Layout) -> set[str]:
    """Every path that a column or the time takes."""
    time = layout.time
    paths = [*time.paths, *time.plus, *(path for more in time.more for path in more)]
    return {*paths, *(path for column in layout.fields for path in column.paths)}


def left(fields: Record, layout: Layout) -> str | None:
    """The fields with a value that nothing takes, as JSON."""
    rest = {name: value for name, value in fields.items() if value is not None and name not in wanted(layout)}
    if not rest:
        return None
    return json.dumps(rest, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


# Lines


def lines(data: bytes) -> list[bytes]:
    """A line ends at a line feed; the last one needs none. One carriage return before the end goes too.

    A byte order mark at the file's beginning belongs to no line.
    """
    cut = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if cut[-1] == b"":
        cut.pop()
    return [line.removesuffix(b"\r") for line in cut]


def text_of(line: object, longest: int = LONGEST_LINE) -> str:
    """A line as text."""
    assert isinstance(line, bytes)
    if not line:
        raise Refused("empty")
    if len(line) > longest:
        raise Refused("line_too_long", len(line), expected=f"at most {longest} bytes")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise Refused("not_utf8") from None


# Formats: from a line to its fields


class Form(Protocol):
    columns: set[str]

    def record(self, line: object) -> Found | None:
        """What a line is; None for a header line."""


def form_of(layout: Layout, cut: Sequence[bytes]) -> Form:
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
        # The first line that is not empty tells: Zeek's own form begins with header lines.
        first = next(filter(None, cut), b"")
        variant = "json" if first.lstrip().startswith(b"{") else "tsv"
    return Json(layout) if variant == "json" else ZeekTsv(layout)


class Apache:
    """`client ident user [time] "request" status bytes`, and in the combined form `"referer" "agent"`.

    Inside quotes a backslash takes the next character with it; values stand as they are written, with
    their backslashes. A dash is no value, except where it is the client, the time or the request.
    """

    QUOTED = r'((?:[^"\\]|\\.)*)'
    COMMON = re.compile(
        r"([^ \t\f\r]+) ([^ \t\f\r]+) (.*?) \[([^\]]*)\] "
        rf'"{QUOTED}" ([0-9][0-9][0-9]) ([0-9]+|-)(?: "{QUOTED}" "{QUOTED}")?'
    )
    NAMES = ("client", "ident", "user", "time", "request", "status", "bytes", "referer", "agent")
    REQUEST = re.compile(r"([^ ]+) (.*) (HTTP/[0-9.]+)")

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.columns: set[str] = set()
        self.common_only = layout.options.get("variant") == "common"

    def record(self, line: object) -> Found | None:
        found = self.COMMON.fullmatch(text_of(line))
        if found is None or (self.common_only and found[8] is not None):
            forms = "common log form" if self.common_only else "common or the combined log form"
            raise Refused("no_match", expected=f"the {forms}")
        fields = dict(zip(self.NAMES, found.groups(), strict=True))
        for name in ("ident", "user", "bytes", "referer", "agent"):
            if fields[name] == "-":
                fields[name] = None
        request = self.REQUEST.fullmatch(fields["request"] or "")
        parts = request.groups() if request else (None, None, None)
        fields |= dict(zip(("method", "path", "protocol"), parts, strict=True))
        shown = fields.keys() - ({"referer", "agent"} if found[8] is None else set())
        return Found(fields, shown, shown, left(fields, self.layout))


class Csv:
    """Values with a delimiter between them; a record is a line.

    The names are the options', or stand in the first line that is not empty. Where that line cannot be
    read, it and all others have no header. A quote counts where a value begins, and there to the next
    quote that is not doubled; anything up to the delimiter after it belongs to the value as well. An
    empty value is none, quoted or not: a file in which everything is quoted could not say it otherwise.
    Of two columns of one name the last is taken.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        options = layout.options
        self.named = options.get("header", True) is False
        self.delimiter = str(options.get("delimiter", ","))
        self.quote = str(options.get("quote", '"'))
        self.awaits_header = bool(options.get("header", True))
        names = options.get("names")
        self.names = [str(name) for name in names] if isinstance(names, list | tuple) else None
        self.columns = set(self.names or ())

    def record(self, line: object) -> Found | None:
        if line and self.awaits_header:
            self.awaits_header = False
            self.names = None
            self.columns = set()
            text = text_of(line)
            try:
                self.names = self.values(text)
            except Refused:
                raise Refused("no_header") from None
            self.columns = set(self.names)
            return None
        text = text_of(line)
        if self.names is None:
            raise Refused("no_header")
        values = self.values(text)
        if len(values) != len(self.names):
            raise Refused("field_count", len(values), expected=f"{len(self.names)}")
        fields = {name: value or None for name, value in zip(self.names, values, strict=True)}
        names = set(self.names)
        return Found(fields, names, names if self.named else set(), left(fields, self.layout))

    def values(self, text: str) -> list[str]:
        # The library's reader takes a carriage return for a line's end; here it is a character like
        # any other, so it stands in as one that the line does not hold.
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


class ZeekTsv:
    """Values with a separator between them. Lines that begin with # are header lines wherever they stand.

    `#separator` (with \\xNN for a character), `#unset_field`, `#empty_field` and `#fields` hold from
    there on; other header lines say nothing here. An unset value is none, an empty one is the empty
    text. Of two columns of one name the last is taken. Values stand as they are written.
    """

    def __init__(self, layout: Layout) -> None:
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
        values = text.split(self.separator)
        if len(values) != len(self.names):
            raise Refused("field_count", len(values), expected=f"{len(self.names)}")
        fields = {name: self.value(value) for name, value in zip(self.names, values, strict=True)}
        return Found(fields, set(self.names), set(), left(fields, self.layout))

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


class Number(str):
    """A number of a JSON text, as it is written there."""


class Regex:
    """Named groups; the whole line has to match. A group that takes no part, or nothing, has no value."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.columns: set[str] = set()
        self.pattern = re.compile(str(layout.options["pattern"]), re.ASCII)

    def record(self, line: object) -> Found | None:
        found = self.pattern.fullmatch(text_of(line))
        if found is None:
            raise Refused("no_match", expected="the pattern")
        fields = {name: value or None for name, value in found.groupdict().items()}
        shown = {name for name, value in fields.items() if value is not None}
        return Found(fields, shown, shown, left(fields, self.layout))


@dataclass
class Word:
    """A word as it stands, and where it ends; the name and the value of one that is a pair."""

    text: str
    end: int
    name: str | None = None
    value: str = ""


def words(text: str, separators: str, assign: str, quote: str) -> Iterator[Word]:
    """The words of a line, letter by letter.

    A word with an assign after its first letter is a pair. Only where its value begins does a quote open,
    and separators between it and the closing one are of the value. Two quotes there are one, and so is one
    behind a backslash; two backslashes are one. What comes after the closing quote is of the value too.
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
                taken = 2 if both in (quote * 2, "\\" + quote, "\\\\") else 1
                value += both[-1] if taken == 2 else both[0]
                at += taken
            at += 1
        while at < len(text) and text[at] not in separators:
            value += text[at]
            at += 1
        yield Word(text[start:at], at, name or None, value)


def firsts(pairs: Iterable[Word]) -> dict[str, str | None]:
    """Values by name, of which the first counts; an empty one is none."""
    fields: dict[str, str | None] = {}
    for pair in pairs:
        if pair.name is not None:
            fields.setdefault(pair.name, pair.value or None)
    return fields


class KeyValue:
    """Pairs; other words count for nothing."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.columns: set[str] = set()
        options = {"separator": " \t", "assign": "=", "quote": '"', **layout.options}
        self.signs = [str(options[name]) for name in ("separator", "assign", "quote")]

    def record(self, line: object) -> Found | None:
        fields = firsts(words(text_of(line), *self.signs))
        if not fields:
            raise Refused("no_match", expected=f"a line with name{self.signs[1]}value in it")
        return Found(
            dict.fromkeys(wanted(self.layout)) | fields, set(fields), set(), left(fields, self.layout)
        )


class Syscalls:
    """Words that lead, a name, pairs, and after `=>` what the call gives back."""

    def __init__(self, layout: Layout) -> None:
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
        fields = dict.fromkeys(wanted(self.layout)) | given | own
        return Found(fields, shown | given.keys(), shown, left(given | own, self.layout))


class Json:
    """An object a line. Of two members of one name the last is taken; null is no value.

    A path is a member's name, or else names joined by dots, down through objects. A number has the text
    with which it is written, true and false have theirs, an array or object the shortest JSON text of
    the same content. Half a surrogate pair is no character and becomes the replacement character.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.columns: set[str] = set()
        paths = [path for column in layout.fields for path in column.paths]
        more = [path for one in layout.time.more for path in one]
        self.paths = [*paths, *layout.time.paths, *layout.time.plus, *more]

    def record(self, line: object) -> Found | None:
        found = line.inside if isinstance(line, Json.Value) else self.loaded(text_of(line), DEEPEST_JSON)
        if not isinstance(found, dict):
            raise Refused("not_an_object")
        routes = [route for path in self.paths if (route := self.route(found, path))]
        nested = {".".join(route) for route in routes}
        kept = self.without(found, routes)
        rest = re.sub("[\ud800-\udfff]", "\ufffd", self.written(kept, ordered=True)) if kept else None
        names = {re.sub("[\ud800-\udfff]", "\ufffd", name) for name in found}
        return Found(
            {path: self.at(found, path) for path in self.paths}, names | nested, nested - names, rest
        )

    @dataclass
    class Value:
        """A record that has been read with its line."""

        inside: object

    def records(self, line: bytes) -> list["Json.Value | Refused"]:
        """The records of a line, or why there are none."""
        path = str(self.layout.options["records"]).removesuffix("[]")
        around = path.count(".") + 2
        try:
            whole = self.loaded(text_of(line, 2**24), DEEPEST_JSON + around)
        except Refused as refused:
            one_line = "an object a line, not one over several lines"
            return [Refused("bad_json", expected=one_line) if refused.reason == "bad_json" else refused]
        route = self.route(whole, path) if isinstance(whole, dict) else []
        for name in route:
            assert isinstance(whole, dict)
            whole = whole[name]
        if not route or not isinstance(whole, list):
            return [Refused("no_records", expected=f"a list at {path}[]")]
        return [Refused("bad_json") if deep(self.written(record)) else Json.Value(record) for record in whole]

    def loaded(self, text: str, deepest: int) -> object:
        if deep(text, deepest):
            raise Refused("bad_json")
        try:
            return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=self.constant)
        except ValueError:
            raise Refused("bad_json") from None

    def route(self, found: Mapping[str, object], path: str) -> list[str]:
        """The names that lead to what a path means; none where the record has nothing there."""
        if path in found:
            return [path]
        first, dot, rest = path.partition(".")
        inside = found.get(first)
        further = self.route(inside, rest) if dot and isinstance(inside, dict) else []
        return [first, *further] if further else []

    def without(self, found: Mapping[str, object], routes: list[list[str]]) -> dict[str, object]:
        """An object without what some routes lead to, and without null in the objects on the way."""
        left: dict[str, object] = {}
        for name, value in found.items():
            further = [route[1:] for route in routes if route[0] == name]
            if [] in further:
                continue
            if further:
                assert isinstance(value, dict)
                value = self.without(value, further) or None
            if value is not None:
                left[name] = value
        return left

    def constant(self, name: str) -> object:
        raise ValueError(f"{name} is no JSON")

    def at(self, found: Mapping[str, object], path: str) -> str | None:
        while path not in found:
            first, dot, path = path.partition(".")
            inside = found.get(first)
            if not dot or not isinstance(inside, dict):
                return None
            found = inside
        value = found[path]
        if value is None:
            return None
        text = value if isinstance(value, str) else self.written(value)
        return re.sub("[\ud800-\udfff]", "\ufffd", text)

    def written(self, value: object, ordered: bool = False) -> str:
        match value:
            case Number():
                return value
            case list():
                return f"[{','.join(self.written(inner, ordered) for inner in value)}]"
            case dict():
                items = sorted(value.items()) if ordered else value.items()
                inside = (f"{self.written(name)}:{self.written(inner, ordered)}" for name, inner in items)
                return f"{{{','.join(inside)}}}"
            case _:
                return json.dumps(value, ensure_ascii=False)


def deep(text: str, most: int = DEEPEST_JSON) -> bool:
    """Whether more brackets are open at once than any log has, outside of strings."""
    depth = deepest = 0
    for char in re.sub(r'"(\\.|[^"\\])*"', "", text):
        depth += (char in "[{") - (char in "]}")
        deepest = max(deepest, depth)
    return deepest > most


# Values: from text to the declared type


def first_of(record: Record, paths: Sequence[str]) -> str | None:
    """The value under the first path that has one."""
    return next((value for path in paths if (value := record.get(path)) is not None), None)


def value_of(record: Record, column: Field) -> object:
    """A declared column's value."""
    text = first_of(record, column.paths)
    if text is None or is_missing(text, column):
        return None
    if column.type == "string":
        return text
    if column.type == "boolean":
        if text not in TRUE | FALSE:
            raise Refused("bad_type", text, column.name, "true or false")
        return text in TRUE
    if column.type == "integer":
        if not INTEGER.fullmatch(text):
            raise Refused("bad_type", text, column.name, "a whole number")
        digits = text.lstrip("+-").lstrip("0") or "0"
        if len(digits) > 20 or int(digits) > LARGEST_INTEGER:
            raise Refused("out_of_range", text, column.name, "-9007199254740992 to 9007199254740992")
        return -int(digits) if text.startswith("-") else int(digits)
    if column.type == "number":
        if not NUMBER.fullmatch(text):
            raise Refused("bad_type", text, column.name, "a number")
        steps = rounded(text, Fraction(column.resolution))
        if steps is None or abs(steps) > MOST_STEPS:
            raise Refused("out_of_range", text, column.name, f"at most 2**50 steps of {column.resolution}")
        return float(steps * Fraction(column.resolution))
    try:
        return instant(text, column.time_format or "iso", column.zone)
    except Refused:
        raise Refused("bad_type", text, column.name, in_form(column.time_format or "iso")) from None


def is_missing(text: str, column: Field) -> bool:
    """Whether a text is one that means no value; a number is the same however it is written."""
    if text in column.missing:
        return True
    numeric = column.type in ("integer", "number") or column.time_format in EPOCHS
    if not numeric or not NUMBER.fullmatch(text):
        return False
    return float(text) in [float(other) for other in column.missing if NUMBER.fullmatch(other)]


def rounded(text: str, step: Fraction) -> int | None:
    """How many steps make a number, half to even.

    A number is the double next to it, in the shortest decimal that means this double: what JSON readers
    keep, and for up to 15 digits the number as written. None if it is beyond all doubles.
    """
    double = float(text)
    return None if double in (float("inf"), float("-inf")) else round(Fraction(repr(double)) / step)


# Times


def event_time(record: Record, layout: Layout, number: int, start: datetime | None) -> datetime:
    time: EventTime = layout.time
    if time.by_lines is not None:
        first = (
            start if time.by_lines.start is None else EARLIEST + timedelta(microseconds=time.by_lines.start)
        )
        assert first is not None
        try:
            moment = first + (number - 1) * timedelta(microseconds=time.by_lines.step)
        except OverflowError:
            moment = LATEST
        if not EARLIEST <= moment < LATEST:
            raise Refused("bad_time", number, expected="a line whose time is from 1970 to 2261")
        return moment
    fields = [time.paths, *time.more]
    texts = [first_of(record, paths) for paths in fields]
    text = " ".join(text for text in texts if text is not None)
    if None in texts:
        wanted = " and ".join(" or ".join(paths) for paths in fields)
        there = all(any(path in record for path in paths) for paths in fields)
        raise Refused(
            "missing_time", expected=wanted if there else f"{wanted} among {', '.join(record)[:200]}"
        )
    form = time.time_format
    if layout.format == "apache" and form == "iso":
        form = "%d/%b/%Y:%H:%M:%S %z"
    moment = instant(text, form, time.zone)
    more = first_of(record, time.plus)
    if more is not None:
        if not NUMBER.fullmatch(more) or not abs(float(more)) < LONGEST_ADDED:
            raise Refused("bad_time", more, time.plus[0], "fewer than 1000000000 seconds")
        moment += timedelta(microseconds=rounded(more, Fraction(1, 1_000_000)) or 0)
    return in_range(moment, text, form)


def instant(text: str, form: str, zone: str | None) -> datetime:
    """A time in UTC, to the microsecond."""
    try:
        if form in EPOCHS:
            if not NUMBER.fullmatch(text):
                raise Refused("bad_time", text, expected=in_form(form))
            since = rounded(text, Fraction(1, EPOCHS[form]))
            if since is None:
                raise Refused("bad_time", text, expected=in_form(form))
            return in_range(EARLIEST + timedelta(microseconds=since), text, form)
        moment = datetime.fromisoformat(text) if form == "iso" else datetime.strptime(text, form)  # noqa: DTZ007
        if moment.tzinfo is None:
            if zone is None:
                raise Refused("no_zone", text, expected="an offset, or a zone in the stream's file")
            moment = from_local(moment, ZoneInfo(zone), text)
        return in_range(moment.astimezone(UTC), text, form)
    except (ValueError, OverflowError):
        raise Refused("bad_time", text, expected=in_form(form)) from None


def in_range(moment: datetime, text: str, form: str) -> datetime:
    if not EARLIEST <= moment < LATEST:
        raise Refused("bad_time", text, expected=in_form(form))
    return moment


def in_form(form: str) -> str:
    """What a time has to be, in words."""
    return f"{'ISO 8601' if form == 'iso' else form}, from 1970 to 2261"


def from_local(local: datetime, zone: ZoneInfo, text: str) -> datetime:
    """The first instant at which the zone's clocks show a time.

    Clocks go by what held a day before or by what holds a day after. Where they are put back, both give
    an instant, and the earlier is taken; where they are put forward, neither does for the time between.
    """
    shown = [
        moment for moment in candidates(local, zone) if moment.astimezone(zone).replace(tzinfo=None) == local
    ]
    if not shown:
        raise Refused("no_such_local_time", text, expected="a time that the zone's clocks show")
    return min(shown)


def candidates(local: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    for days in (-1, 1):
        offset = (local + timedelta(days=days)).replace(tzinfo=UTC).astimezone(zone).utcoffset()
        assert offset is not None
        yield (local - offset).replace(tzinfo=UTC)
