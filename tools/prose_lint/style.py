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
    """A rule about words: what is found, and what to write instead. The pattern excludes correct uses."""

    rule: str
    pattern: str
    advice: str


def _wordings() -> list[tuple[Wording, re.Pattern[str]]]:
    rules = yaml.safe_load(Path(__file__).with_name("wordings.yaml").read_text())
    wordings = [Wording(rule, one["pattern"], one["instead"]) for rule, one in rules.items()]
    return [(one, re.compile(rf"\b(?:{one.pattern})\b", re.IGNORECASE | re.VERBOSE)) for one in wordings]


WORDINGS = _wordings()
"""Rules about words, each with its compiled pattern."""

_NO_SUMMARY = re.compile(r"\s*(What|How|Who|When|Where|It|They|This|If)\b")
_PARAGRAPH = re.compile(r"\n\s*\n|\n\s*(?=[-*] |\d+\. |[\w*, ]+: )")
_NO_SENTENCES = re.compile(r"    |#|\||!\[|:::")
"""Lines of a page without sentences: code, headings, tables, pictures."""


def problems(text: Text) -> Iterator[Problem]:
    """Yield the places of a text that break a rule."""
    for wording, pattern in WORDINGS:
        for match in pattern.finditer(text.text):
            line = text.line + text.text.count("\n", 0, match.start())
            yield Problem(line, wording.rule, match[0], wording.advice)
    counts = {one: len(one.split()) for one in sentences(text)}
    for one, count in counts.items():
        if count > MAX_WORDS:
            yield Problem(text.line, "sentence", f"{one[:60]}...", f"{count} words: split it")
    if text.kind == "page" and counts and sum(counts.values()) >= MAX_MEAN_WORDS * len(counts):
        yield Problem(
            text.line, "sentences", "the page", f"{MAX_MEAN_WORDS} words or more on average: split some"
        )
    if text.of not in ("", "attribute") and (match := _NO_SUMMARY.match(text.text)):
        yield Problem(text.line, "summary", match[1], "an imperative, or a noun that names the thing")


def sentences(text: Text) -> list[str]:
    """Return the sentences of a text. Items of a list are sentences of their own; a colon ends one."""
    lines = text.text.splitlines()
    if text.kind == "page":
        lines = ["" if _NO_SENTENCES.match(line) else line for line in lines]
    paragraphs = list[str]()
    for paragraph in _PARAGRAPH.split("\n".join(lines)):
        # A help text keeps the lines of a paragraph that begins with \\b.
        paragraphs += paragraph.splitlines() if paragraph.startswith("\b") else [" ".join(paragraph.split())]
    return [one for paragraph in paragraphs for one in re.split(r"(?<=[.:!?])\s+", paragraph) if one]
