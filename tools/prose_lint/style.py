"""Rules of style: words that have a plainer or a standard one, and the length of sentences."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from .texts import Text

MAX_WORDS = 40
"""Maximum number of words in a sentence."""

MAX_MEAN_WORDS = 20
"""Number of words that sentences of a page must stay below on average."""


@dataclass(frozen=True, order=True)
class Problem:
    """A place that breaks a rule."""

    line: int
    rule: str
    quote: str
    advice: str


@dataclass(frozen=True)
class Wording:
    """A rule about words.

    Attributes:
        rule: its name.
        pattern: matches the words, except in correct uses.
        advice: what to write instead.
    """

    rule: str
    pattern: re.Pattern[str]
    advice: str


WORDINGS = tuple(
    Wording(rule, re.compile(rf"\b(?:{one['pattern']})\b", re.IGNORECASE | re.VERBOSE), one["instead"])
    for rule, one in yaml.safe_load(Path(__file__).with_name("wordings.yaml").read_text()).items()
)
"""The rules about words."""

_NO_SUMMARY = re.compile(r"\s*(What|How|Who|When|Where|It|They|This|If)\b")
_PARAGRAPH = re.compile(r"\n\s*\n|\n\s*(?=[-*] |\d+\. )")
_PARAMETER = re.compile(rf"{_PARAGRAPH.pattern}|\n\s*(?=[\w*, ]+: )")
"""Ends of paragraphs and items, and of a docstring's parameters."""
_NO_SENTENCES = re.compile(r"    |#|\||!\[|:::")
"""Lines of a page without sentences: code, headings, tables, pictures."""


def problems(text: Text) -> Iterator[Problem]:
    """Yield the places of a text that break a rule."""
    for wording in WORDINGS:
        for match in wording.pattern.finditer(text.text):
            line = text.line + text.text.count("\n", 0, match.start())
            yield Problem(line, wording.rule, match[0], wording.advice)
    counts = {one: len(one.split()) for one in sentences(text)}
    for one, count in counts.items():
        if count > MAX_WORDS:
            yield Problem(text.line, "sentence", f"{one[:60]}...", f"{count} words: split it")
    if text.kind == "page" and counts and sum(counts.values()) >= MAX_MEAN_WORDS * len(counts):
        advice = f"{MAX_MEAN_WORDS} words or more on average: split some"
        yield Problem(text.line, "sentences", "the page", advice)
    if text.of not in ("", "attribute") and (start := _NO_SUMMARY.match(text.text)):
        yield Problem(text.line, "summary", start[1], "an imperative, or a noun that names the thing")


def sentences(text: Text) -> list[str]:
    """Return the sentences of a text. Items of a list are sentences of their own; a colon ends one."""
    lines = text.text.splitlines()
    if text.kind == "page":
        lines = ["" if _NO_SENTENCES.match(line) else line for line in lines]
    paragraphs = list[str]()
    ends = _PARAGRAPH if text.kind == "page" else _PARAMETER
    for paragraph in ends.split("\n".join(lines)):
        # A help text keeps the lines of a paragraph that begins with \\b.
        paragraphs += paragraph.splitlines() if paragraph.startswith("\b") else [" ".join(paragraph.split())]
    return [one for paragraph in paragraphs for one in re.split(r"(?<=[.:!?])\s+", paragraph) if one]
