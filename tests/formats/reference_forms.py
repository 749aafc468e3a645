"""The plain parser of a log: from a line of each format to its fields.

Here are the formats with a pattern; JSON, delimited values and pairs have their own modules.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile
from typing import Protocol

from tests.formats.reference_delimited import Csv, ZeekTsv
from tests.formats.reference_json import Json
from tests.formats.reference_lines import Found, Refused, is_comment, text_of, unread_fields
from tests.formats.reference_pairs import KeyValue, Syscalls
from transom.formats.record_format import RecordFormat


class Form(Protocol):
    columns: set[str]

    def record(self, line: object) -> Found | None:
        """Return the content of a line; None for a header line."""


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


class Regex:
    """Named groups; the whole line has to match. A group without a match, or an empty one, has no value.

    Lines that begin with `comment` are no records.
    """

    def __init__(self, layout: RecordFormat) -> None:
        self.layout = layout
        self.columns: set[str] = set()
        self.pattern = re.compile(str(layout.options["pattern"]), re.ASCII)

    def record(self, line: object) -> Found | None:
        text = text_of(line)
        if is_comment(text, self.layout):
            return None
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


FORMS: dict[str, Callable[[RecordFormat], Form]] = {
    "apache": Apache, "csv": Csv, "json": Json, "kv": KeyValue, "regex": Regex, "syscalls": Syscalls,
}  # fmt: skip


def form_of(layout: RecordFormat, cut: Sequence[bytes]) -> Form:
    if layout.format != "zeek":
        return FORMS[layout.format](layout)
    variant = layout.options.get("variant", "auto")
    if variant == "auto":
        # The first line that is not empty decides: Zeek's own format begins with header lines.
        first = next(filter(None, cut), b"")
        variant = "json" if first.lstrip().startswith(b"{") else "tsv"
    return Json(layout) if variant == "json" else ZeekTsv(layout)
