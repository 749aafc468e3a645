r"""Check regular expressions of a specification: every engine reads them alike.

Arrow and Spark have engines of their own (RE2 and Java's), and Python checks the text. So a pattern holds
what all of them know. RE2 reads a line once, whatever the pattern. Java's engine tries again: a repeat of a
repeat, such as `(a+)+`, could take for ever there, and is refused. What the format `regex` reads may hold
one.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

LONGEST = 10_000
"""Characters of the longest pattern."""
MAX_REPEATS = 1000
"""How many times RE2 repeats a part, also where repeats lie in each other."""
LARGEST = 200_000
"""Steps of RE2's program for a pattern, roughly: it takes a third of a million."""
MANY = 10
"""Turns of a repeat above which it counts as one without bound."""

_TOKEN = re.compile(
    r"""\\(?:x..|u.{4}|U.{8}|.)                             # an escape
    |\[\^?\]?(?:\\.|[^\]\\])*\]                             # a class
    |\((?:\?(?:P<\w+>|[a-zA-Z-]*[:)]|<?[=!]|>|\#[^)]*\)))?  # a group's beginning, flags, a comment
    |(?P<repeat>[*+?]|\{(?P<least>[0-9]+)(?P<comma>,?)(?P<most>[0-9]*)\})[?+]?
    |.""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN = re.compile(r"[^\\()\[{.^$]|\\[^\w\s]")
"""A letter that means itself."""
_KNOWN = "afnrtvdDsSwWbBAx0"
_ZERO_WIDTH = re.compile(r"[\^$]|\\[bBAZ1-9]|\((?:.*\)|\?<?[=!])", re.DOTALL)
_HAS_NOT = {
    "?=": "a look ahead", "?!": "a look ahead", "?<=": "a look behind", "?<!": "a look behind",
    "?P=": "a back reference", "?>": "an atomic group", "?(": "a conditional", "?#": "a comment",
}  # fmt: skip


class PatternError(ValueError):
    """A pattern that cannot be used.

    Attributes:
        offset: where it goes wrong, in characters from 0.
        message: the rule.
    """

    def __init__(self, offset: int, message: str) -> None:
        self.offset, self.message = offset, message
        super().__init__(message)


@dataclass(frozen=True)
class CheckedRegex:
    """A pattern that has been checked.

    Attributes:
        text: the pattern, in which groups without a name count for nothing.
        groups: the names of its groups, in order.
    """

    text: str
    groups: tuple[str, ...]


@lru_cache(maxsize=256)
def validate_regex(text: str, linear: bool = True) -> CheckedRegex:
    """Return a pattern that Python compiles.

    Args:
        text: the pattern.
        linear: whether RE2 reads it, which has no look around and nothing else that takes more than one
            pass, and repeats a part at most a thousand times.

    Raises:
        PatternError: it cannot be used.
    """
    if len(text) > LONGEST:
        raise PatternError(LONGEST, f"must have at most {LONGEST} characters; it has {len(text)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what may mean something else in a Python to come
            compiled = re.compile(text)
    except re.error as error:
        twice = re.match(r"redefinition of group name '(\w+)'", error.msg)
        rule = f"the group {twice[1]!r} is there twice" if twice else f"no regular expression: {error.msg}"
        raise PatternError(error.pos or 0, rule) from None
    except (OverflowError, RecursionError) as error:
        raise PatternError(0, f"no regular expression: {error}") from None
    walk = _Walk(text, linear)
    whole = _Part.of(0, len(text), walk.branches())
    if linear and whole.size > LARGEST:
        raise PatternError(0, "is too large with its repeats written out")
    plain = "".join("(?:" if token[0] == "(" else token[0] for token in _TOKEN.finditer(text))
    return CheckedRegex(plain, tuple(compiled.groupindex))


def beginnings(text: str) -> list[list[tuple[str, str]]]:
    """Return, for each alternative of a pattern, its beginnings and the part that follows each of them.

    Args:
        text: a pattern that `validate_regex` has passed, and whose groups without a name count for nothing.

    Returns:
        For each alternative, from nothing to the whole: the pattern of a beginning, and the text of the part
        behind it, with plain letters taken together; empty behind the whole.
    """
    flags = re.match(r"(?:\(\?[a-zA-Z-]+\))*", text)
    before = flags[0] if flags else ""
    found, start = [], 0
    for branch in _Walk(text, linear=True).branches():
        head = before if start else ""
        plain = [_PLAIN.fullmatch(text[part.start : part.end]) is not None for part in branch]
        parts = []
        for at, part in enumerate(branch):
            last = at
            while plain[at] and last + 1 < len(branch) and plain[last + 1]:
                last += 1
            parts.append((head + text[start : part.start], text[part.start : branch[last].end]))
        end = branch[-1].end if branch else start
        found.append([*parts, (head + text[start:end], "")])
        start = end + 1
    return found


class _Part(NamedTuple):
    """A part of a pattern.

    Attributes:
        start, end: where it stands.
        repeats: how many times something in it is repeated at most, through repeats in each other.
        size: steps of RE2's program for it, roughly, which writes its repeats out.
        endless: whether it may be nothing but a repeat without bound.
        empty: whether it may take nothing.
    """

    start: int
    end: int
    repeats: int = 1
    size: int = 1
    endless: bool = False
    empty: bool = False

    @classmethod
    def of(cls, start: int, end: int, branches: Sequence[Sequence["_Part"]]) -> "_Part":
        """Return what alternatives are together, each a row of parts."""
        parts = [part for branch in branches for part in branch]
        endless = empty = False
        for branch in branches:
            needed = [part for part in branch if not part.empty]
            empty |= not needed
            endless |= len(needed) < 2 and any(part.endless for part in needed or branch)
        repeats = max((part.repeats for part in parts), default=1)
        return cls(start, end, repeats, 1 + sum(part.size for part in parts), endless, empty)


class _Walk:
    """One walk over a pattern that Python has compiled, so that its brackets and counts are sound."""

    def __init__(self, text: str, linear: bool) -> None:
        self.text, self.linear = text, linear
        self.tokens = _TOKEN.finditer(text)
        self.end = 0

    def branches(self) -> list[list[_Part]]:
        """Return the alternatives up to the end of the group or the pattern, each by its parts."""
        found: list[list[_Part]] = [[]]
        for token in self.tokens:
            self.end = token.end()
            if token[0] == ")":
                break
            if token[0] == "|":
                found.append([])
            elif token["repeat"] and found[-1]:
                found[-1].append(self.repeated(found[-1].pop(), token))
            else:
                found[-1].append(self.part(token))
        return found

    def repeated(self, part: _Part, token: re.Match[str]) -> _Part:
        """Return what a part is with the repeat that follows it."""
        if token["least"] is None:
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[token["repeat"]]
        else:
            least = int(token["least"])
            most = least if not token["comma"] else int(token["most"]) if token["most"] else None
        if self.linear and len(token[0]) > 1 and token[0][-1] == "+":
            raise PatternError(token.end() - 1, "a possessive repeat is not known here")
        times = max(least, most or 0, 1)
        repeats = part.repeats * times
        if self.linear and repeats > MAX_REPEATS:
            rule = f"repeats a part at most {MAX_REPEATS} times; got {repeats}"
            raise PatternError(token.start(), rule)
        if not self.linear and part.endless and (most is None or most > MANY):
            what = self.text[part.start : token.end()][:40]
            raise PatternError(part.start, f"{what} repeats a repeat, which may take for ever")
        endless, empty = part.endless or most is None, part.empty or not least
        return _Part(part.start, token.end(), repeats, part.size * times, endless, empty)

    def part(self, token: re.Match[str]) -> _Part:
        """Return a group, a class, an escape or a letter."""
        start, written = token.start(), token[0]
        self.refuse_unknown(start, written)
        zero_width = _ZERO_WIDTH.fullmatch(written) is not None
        if written[0] == "(" and written[-1] != ")":
            part = _Part.of(start, 0, self.branches())
            return _Part(start, self.end, empty=True) if zero_width else part._replace(end=self.end)
        size = 10 if written[0] == "[" or written in (".", r"\D", r"\S", r"\W") else 1
        # In UTF-8 a class of other letters than ASCII's is one of bytes after bytes.
        size += 20 * sum(letter > "\x7f" for letter in written[1:])
        return _Part(start, token.end(), size=size, empty=zero_width)

    def refuse_unknown(self, start: int, written: str) -> None:
        """Refuse flags that one of the engines does not know, and all else that RE2 does not know.

        Raises:
            PatternError: it is such a token.
        """
        flags = re.fullmatch(r"\(\?([a-zA-Z-]*)[:)]", written)
        if flags and set(flags[1]) - set("ims-"):
            raise PatternError(start, f"of the flags, i, m and s are known here; got {flags[1]}")
        if not self.linear:
            return
        for sign, what in _HAS_NOT.items():
            if self.text.startswith(f"({sign}", start):
                raise PatternError(start, f"{what} is not known here")
        for escape in re.finditer(r"\\(.)", written, re.DOTALL):
            if escape[1].isalnum() and escape[1] not in _KNOWN:
                what = "a back reference" if escape[1].isdigit() else escape[0]
                raise PatternError(start + escape.start(), f"{what} is not known here")
