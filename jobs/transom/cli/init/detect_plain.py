"""Detect lines by regular expressions: web servers, CEF, system calls, or a guessed pattern."""

import re
from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address
from math import inf

from transom.cli.init.infer_regex import COMBINED_FIELDS, MESSAGE, REQUEST_PARTS, guess, tokens
from transom.cli.init.infer_types import kind_of, skeleton
from transom.cli.init.log_format import MIN_SHARE, LogFormat, NearMiss, by_pattern, read_lines, read_pairs
from transom.formats.regex import COMBINED, COMMON

MIN_SHARE_OF_OWN_FORM = 0.3
"""Minimum share of lines that a guessed pattern must match; the others may continue earlier lines."""
_HOST = r"(?P<host>[^ ]+?)(?::(?P<port>[0-9]+))? "
_REQUEST = rf'"(?:{REQUEST_PARTS}|(?P<request>(?:[^"\\]|\\.)*))"'
_HOSTED = _HOST + re.sub(
    r'"\(\?P<request>.*?\)"(?= \(\?P<status>)', lambda _: _REQUEST, COMMON.removeprefix("^") + COMBINED
)
"""A web server's line after the virtual host."""
NGINX = (
    r"(?P<time>[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:]{8}) \[(?P<level>[a-z]+)\] (?P<pid>[0-9]+)#(?P<tid>[0-9]+): "
    r"(?:\*(?P<connection>[0-9]+) )?(?P<message>.*?)"
    r"(?:, client: (?P<client>[^,]+))?(?:, server: (?P<server>[^,]*))?"
    rf'(?:, request: "(?P<request>{REQUEST_PARTS}|[^"]*)")?'
) + "".join(rf'(?:, {name}: "(?P<{name}>[^"]*)")?' for name in ("subrequest", "upstream", "host", "referrer"))
"""Error log of nginx and its derivatives, with optional pairs after the message in this order."""
APACHE = (
    r"\[(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} [^\]]+)\] \[(?:(?P<module>[^:\]]*):)?(?P<level>[a-z0-9]+)\]"
    r"(?: \[pid (?P<pid>[0-9]+)(?::tid (?P<tid>[0-9]+))?\])?"
    r"(?:(?: (?P<cause>\([0-9-]+\)[^\[]*):)?"
    r" \[(?:client|remote) (?P<client>[^\]]*?)(?::(?P<port>[0-9]+))?\])?"
    r" (?:(?P<code>[A-Z]{2}[0-9]{5}): )?(?P<message>.*?)(?:, referer: (?P<referer>.*))?"
)
"""Error log of Apache httpd, 2.4 and earlier."""
_STRACE = (
    r"(?:(?:\[pid +)?(?P<pid>[0-9]+)\]? +)?(?:(?P<time>[0-9][0-9:.]*[0-9]) +)?"
    r"(?P<call>[a-z_][a-z0-9_]*)\((?P<arguments>.*)\) += (?P<return>.*)"
)
_CALL = re.compile(
    r"\s*(?P<words>(?:[^\s=\"]+\s+){0,5}[a-z_][a-z0-9_]*)"
    r'(?P<pairs>(?:\s+[^\s="]+=(?:"[^"]*"|[^\s"]*))*)(?P<arrow>\s+=>(?:\s+(?P<result>.*))?)?\s*'
)
CEF_HEADER = ("version", "vendor", "product", "product_version", "event_class", "event", "severity")
MAX_KEYS = 24
"""Maximum number of extension keys of CEF that become groups."""
CEF_TIMES = ("rt", "end", "start", "deviceReceiptTime")
_BAR = r"(?:[^|\\]|\\.)*"
_CEF = re.compile(r"(.*?)CEF:([0-9.]+)" + rf"\|({_BAR})" * 6 + r"\|(.*)")
_CEF_PAIR = re.compile(r"(?:^| )([A-Za-z0-9_]+)=((?:[^=\\]|\\.)*?)(?= +[A-Za-z0-9_]+=|$)")
_CEF_NOTE = (
    "CEF; of its pairs those without blanks in their values are groups, in the order that they have "
    "here; all of them are in `extension`"
)


def apache(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect the common or the combined log format; after a virtual host, the format is a pattern."""
    fields, read, _ = read_lines(lines, "apache", {})
    if read < MIN_SHARE * len(lines):
        return NearMiss(read)
    if sum(map(_is_address, fields["ident"])) >= MIN_SHARE * read:
        return by_pattern(lines, _HOSTED, "a web server's log with the virtual host in front")
    fields = {name: fields[name] for name in COMBINED_FIELDS}
    return LogFormat("apache", fields, preset="apache/combined")


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def error_log(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect the error log of nginx or of Apache httpd; the format is a pattern."""
    note = "a web server's error log; fields that not all lines have are optional"
    logs = [by_pattern(lines, pattern, note) for pattern in (NGINX, APACHE)]
    return max(logs, key=lambda log: log.lines if isinstance(log, NearMiss) else inf)


def cef(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect ArcSight's CEF, with or without syslog's fields before it; the format is a pattern.

    CEF has seven fields between vertical bars, then pairs whose values may contain blanks.
    """
    rows = [match.groups() for match in map(_CEF.fullmatch, lines) if match]
    if len(rows) < MIN_SHARE * len(lines):
        return NearMiss(len(rows))
    prefix = _prefix_pattern([row[0] for row in rows])
    reserved = {*CEF_HEADER, "extension", *re.findall(r"\?P<(\w+)>", prefix)}
    groups = _extension_groups([row[-1] for row in rows], reserved)
    bars = "".join(rf"\|(?P<{name}>{_BAR})" for name in CEF_HEADER[1:])
    pattern = rf"{prefix}CEF:(?P<{CEF_HEADER[0]}>[0-9.]+){bars}\|(?P<extension>{groups}.*)"
    return by_pattern(lines, pattern, _CEF_NOTE, keep_empty=True)


def _prefix_pattern(texts: Sequence[str]) -> str:
    """Return a pattern for the text before the message."""
    if not any(texts):
        return ""
    if all(map(str.strip, texts)):
        texts = [text.rstrip() for text in texts]
        pattern, _ = guess(texts)
        if "(?P<message>" not in pattern and not isinstance(by_pattern(texts, pattern, ""), NearMiss):
            return f"{pattern} *"
    return "(?P<before>.*?)"


def _extension_groups(extensions: Sequence[str], reserved: set[str]) -> str:
    """Return an optional group for each key whose values are times or have no blanks.

    Args:
        reserved: names of other groups; a key with such a name gets a prefix.
    """
    values: dict[str, list[str]] = {}
    places: Counter[str] = Counter()
    for extension in extensions:
        for place, (name, text) in enumerate(_CEF_PAIR.findall(extension)):
            values.setdefault(name, []).append(text)
            places[name] += place
    groups = {}
    for name, texts in values.items():
        words = {len(text.split()) for text in texts if text}
        if words == {1}:
            groups[name] = r"[^ ]+"
        elif name in CEF_TIMES and len(words) == 1:
            groups[name] = r"[^ ]+(?: [^ =]+){" + str(words.pop() - 1) + "}"
    ordered = sorted(groups, key=lambda name: (places[name] / len(values[name]), name))[:MAX_KEYS]
    named = {name: f"cef_{name}" if name in reserved or not name[0].isalpha() else name for name in ordered}
    return "".join(rf"(?:.*?\b{name}=(?P<{named[name]}>{groups[name]}))?" for name in ordered)


def strace(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect the output of strace: `open("/etc/passwd", O_RDONLY) = 3`."""
    note = (
        "strace's output: its arguments are one text, and lines of signals, exits and unfinished calls are "
        "rejected; run strace with -f -ttt for times with the day"
    )
    return by_pattern(lines, _STRACE, note, {"return": "string"})


def syscalls(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect `name [arg=value ...] [=> return]` after the same number of words in each line."""
    rows = [row for row in map(_CALL.fullmatch, lines) if row is not None]
    arrows = sum(row["arrow"] is not None for row in rows)
    if len(rows) < MIN_SHARE * len(lines) or arrows * 4 < len(lines):
        return NearMiss(arrows)
    leads = [row["words"].split() for row in rows]
    width = Counter(map(len, leads)).most_common(1)[0][0]
    words = [lead for lead in leads if len(lead) == width]
    if len(words) < MIN_SHARE * len(lines):
        return NearMiss(len(words))
    names: list[str] = []
    for index in range(width - 1):
        kind = kind_of([row[index] for row in words]).type
        name = {"timestamp": "time", "integer": "pid"}.get(kind, "process")
        names.append(name if name not in names else f"{name}_{index + 1}")
    options = {"lead": names} if names else {}
    fields, _, _ = read_lines(lines, "syscalls", options)
    arguments = read_pairs([row["pairs"] for row in rows], {})
    fields |= {name: texts for name, texts in arguments.items() if name not in fields}
    return LogFormat("syscalls", fields, {"return": "string"}, options)


def own_form(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Guess a first pattern that a user can edit.

    If most lines have nothing in common, use the lines that begin with the same form of a time. The others
    continue a message, such as a stack trace.
    """
    notes = ["?: a first attempt; give the groups names, and take apart what is one"]
    pattern, timed = guess(lines)
    chosen = lines
    if not timed:
        begins = [skeleton(line[:12].split(" ")[0]) for line in lines]
        ((usual, _),) = Counter(begin for begin in begins if "1" in begin).most_common(1) or [("", 0)]
        others = [line for line, begin in zip(lines, begins, strict=True) if begin == usual] or lines
        other, timed = guess(others)
        if timed and read_lines(others, "regex", {"pattern": other})[1] < len(lines):
            pattern, chosen = other, others
            notes.append("lines that do not begin with a time, as of a stack trace, are rejected")
    options = {"pattern": pattern}
    fields, matched, _ = read_lines(chosen, "regex", options)
    takes_apart = not fields.keys() <= {MESSAGE}
    if not takes_apart or matched < MIN_SHARE_OF_OWN_FORM * len(lines):
        alike = Counter(tuple(token.shape for token in tokens(line)) for line in lines)
        why = "" if takes_apart else "it would take a line for one message, with no time in it"
        return NearMiss(alike.most_common(1)[0][1], why)
    return LogFormat("regex", fields, {}, options, notes=tuple(notes))
