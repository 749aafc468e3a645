"""The plain parser of lines of words and pairs: key=value, and system calls."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.formats.reference_lines import Found, Refused, is_comment, read_paths, text_of, unread_fields
from transom.formats.record_format import RecordFormat


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
    """Leading words between separators, then pairs; other words are ignored.

    Lines that begin with `comment` are no records.
    """

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
        if is_comment(rest, self.layout):
            return None
        expected = f"a line with name{self.signs[1]}value in it"
        if self.lead:
            expected += f", after {' '.join(self.lead)}"
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
