"""The parser of each format."""

from collections.abc import Callable

from transom.formats.delimited import Csv, W3c, ZeekTsv
from transom.formats.embedded import Embedded
from transom.formats.json.lines import JsonLines
from transom.formats.pairs import KeyValue, Syscalls
from transom.formats.parser import Parser
from transom.formats.record_format import FormatName, RecordFormat, embedded_format
from transom.formats.regex import Apache, Regex

PARSERS: dict[FormatName, Callable[[RecordFormat], Parser]] = {
    "apache": Apache, "zeek": ZeekTsv, "csv": Csv, "json": JsonLines, "regex": Regex, "kv": KeyValue,
    "syscalls": Syscalls,
}  # fmt: skip
"""The parser of each format; `make_parser` also considers the options."""


def make_parser(layout: RecordFormat, first_line: bytes = b"") -> Parser:
    """Return the parser of a layout. For Zeek's variant `auto`, the first line that is not empty decides."""
    embedded, options = embedded_format(layout.options), layout.options
    if embedded is not None:
        return Embedded(layout, embedded, lambda part: make_parser(part, first_line))
    if layout.format == "csv" and options.get("header") == "w3c":
        return W3c(layout)
    variant = options.get("variant", "auto") if layout.format == "zeek" else None
    if variant == "json" or (variant == "auto" and first_line.lstrip()[:1] == b"{"):
        return JsonLines(layout)
    return PARSERS[layout.format](layout)
