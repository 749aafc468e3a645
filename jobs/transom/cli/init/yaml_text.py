"""YAML as a person would write it: mappings on one line, quotes only where they are needed."""

import json
import re
from collections.abc import Mapping, Sequence

_PLAIN = re.compile(r"[A-Za-z_/][\w ./()<>=-]*(?<! )", re.ASCII)
_OTHERWISE = {"true", "false", "null", "~"}


def scalar(value: object) -> str:
    """A value, in quotes where YAML would read another one without."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _OTHERWISE:
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


def flow(value: object) -> str:
    """A value on one line: `{from: bytes, missing: ["-"]}`."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(name)}: {flow(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def comment(text: str) -> str:
    """A text that may stand behind a `#`: on one line, of characters that are printed."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def lined(rows: Sequence[tuple[str, str]], indent: int = 0, widest: int = 76) -> list[str]:
    """Lines with comments behind them, which stand below each other where the lines are not too long."""
    column = max((len(text) for text, _ in rows if len(text) <= widest), default=0)
    return [
        " " * indent + (f"{text:<{column}}  # {comment(words)}" if words else text) for text, words in rows
    ]
