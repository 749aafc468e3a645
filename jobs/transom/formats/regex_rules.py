r"""Check that all engines interpret the regular expressions of a specification alike.

Arrow and Spark have their own engines (RE2 and Java's), and Python checks the text. So a pattern may only use
syntax that all of them support. RE2 needs one pass over a line for any pattern. Java's engine backtracks: a
repeat of a repeat, such as `(a+)+`, could take exponential time and is refused, except in patterns of the
format `regex`, which only RE2 matches.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

LONGEST = 10_000
"""Maximum number of characters of a pattern."""
MAX_REPEATS = 1000
"""RE2's limit of repetitions of a part; those of nested repeats are multiplied."""
LARGEST = 200_000
"""Maximum size of RE2's program for a pattern, in estimated steps; RE2's own limit is about 330,000."""
MAX_BOUNDED = 10
"""A repeat with a higher maximum counts as unbounded."""

_TOKEN = re.compile(
    r"""\\(?:x..|u.{4}|U.{8}|.)                             # an escape
    |\[\^?\]?(?:\\.|[^\]\\])*\]                             # a class
    |\((?:\?(?:P<\w+>|[a-zA-Z-]*[:)]|<?[=!]|>|\#[^)]*\)))?  # a group's beginning, flags, a comment
    |(?P<repeat>[*+?]|\{(?P<min>[0-9]+)(?P<comma>,?)(?P<max>[0-9]*)\})[?+]?
    |.""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN = re.compile(r"[^\\()\[{.^$]|\\[^\w\s]")
"""A literal character."""
_KNOWN = "afnrtvdDsSwWbBAx0"
_ZERO_WIDTH = re.compile(r"[\^$]|\\[bBAZ1-9]|\((?:.*\)|\?<?[=!])", re.DOTALL)
_HAS_NOT = {
    "?=": "a lookahead", "?!": "a lookahead", "?<=": "a lookbehind", "?<!": "a lookbehind",
    "?P=": "a back reference", "?>": "an atomic group", "?(": "a conditional", "?#": "a comment",
}  # fmt: skip


class PatternError(ValueError):
    """An invalid pattern.

    Attributes:
        offset: the position of the error, in characters from 0.
        message: the violated rule.
    """

    def __init__(self, offset: int, message: str) -> None:
        self.offset, self.message = offset, message
        super().__init__(message)


@dataclass(frozen=True)
class CheckedRegex:
    """A valid pattern.

    Attributes:
        text: the pattern, with unnamed groups made non-capturing.
        groups: the names of its groups, in order.
    """

    text: str
    groups: tuple[str, ...]


@lru_cache(maxsize=256)
def validate_regex(text: str, linear: bool = True) -> CheckedRegex:
    """Check a pattern.

    >>> validate_regex("(?P<client>[^ ]+) (a|b)")
    CheckedRegex(text='(?P<client>[^ ]+) (?:a|b)', groups=('client',))

    Args:
        text: the pattern.
        linear: whether RE2 is the engine. It has no lookaround and nothing else that needs more than one
            pass, and repeats a part at most a thousand times.

    Raises:
        PatternError: the pattern is invalid.
    """
    if len(text) > LONGEST:
        raise PatternError(LONGEST, f"must have at most {LONGEST} characters; it has {len(text)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about syntax that may change in later Python versions
            compiled = re.compile(text)
    except re.error as error:
        name = re.match(r"redefinition of group name '(\w+)'", error.msg)
        rule = f"the group {name[1]!r} appears twice" if name else f"no regular expression: {error.msg}"
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
    """Return the beginnings of each alternative of a pattern, with the part that follows each.

    Args:
        text: the text of a `CheckedRegex`.

    Returns:
        For each alternative, from the empty beginning to the whole: the pattern of a beginning, and the text
        of the part after it, with consecutive literal characters together; empty after the whole.
    """
    flags = re.match(r"(?:\(\?[a-zA-Z-]+\))*", text)
    prefix = flags[0] if flags else ""
    alternatives, start = [], 0
    for branch in _Walk(text, linear=True).branches():
        head = prefix if start else ""
        plain = [_PLAIN.fullmatch(text[part.start : part.end]) is not None for part in branch]
        parts = []
        for at, part in enumerate(branch):
            last = at
            while plain[at] and last + 1 < len(branch) and plain[last + 1]:
                last += 1
            parts.append((head + text[start : part.start], text[part.start : branch[last].end]))
        end = branch[-1].end if branch else start
        alternatives.append([*parts, (head + text[start:end], "")])
        start = end + 1
    return alternatives


class _Part(NamedTuple):
    """A part of a pattern.

    Attributes:
        start: the position of its first character.
        end: the position after its last character.
        repeats: the maximum number of repetitions inside it; those of nested repeats are multiplied.
        size: the estimated size of RE2's program for it, with repeats written out.
        endless: whether it may consist of an unbounded repeat alone.
        empty: whether it may match the empty text.
    """

    start: int
    end: int
    repeats: int = 1
    size: int = 1
    endless: bool = False
    empty: bool = False

    @classmethod
    def of(cls, start: int, end: int, branches: Sequence[Sequence["_Part"]]) -> "_Part":
        """Return alternatives, each a list of parts, as one part."""
        parts = [part for branch in branches for part in branch]
        endless = empty = False
        for branch in branches:
            nonempty = [part for part in branch if not part.empty]
            empty |= not nonempty
            endless |= len(nonempty) < 2 and any(part.endless for part in nonempty or branch)
        repeats = max((part.repeats for part in parts), default=1)
        return cls(start, end, repeats, 1 + sum(part.size for part in parts), endless, empty)


class _Walk:
    """One walk over a pattern that Python compiles, so that its brackets and counts are valid."""

    def __init__(self, text: str, linear: bool) -> None:
        self.text, self.linear = text, linear
        self.tokens = _TOKEN.finditer(text)
        self.end = 0

    def branches(self) -> list[list[_Part]]:
        """Return the alternatives up to the end of the group or the pattern, each as a list of parts."""
        alternatives: list[list[_Part]] = [[]]
        for token in self.tokens:
            self.end = token.end()
            if token[0] == ")":
                break
            if token[0] == "|":
                alternatives.append([])
            elif token["repeat"] and alternatives[-1]:
                alternatives[-1].append(self.repeated(alternatives[-1].pop(), token))
            else:
                alternatives[-1].append(self.part(token))
        return alternatives

    def repeated(self, part: _Part, token: re.Match[str]) -> _Part:
        """Return a part with the repeat that follows it."""
        if token["min"] is None:
            minimum, maximum = {"*": (0, None), "+": (1, None), "?": (0, 1)}[token["repeat"]]
        else:
            minimum = int(token["min"])
            maximum = minimum if not token["comma"] else int(token["max"]) if token["max"] else None
        if self.linear and len(token[0]) > 1 and token[0][-1] == "+":
            raise PatternError(token.end() - 1, "a possessive repeat is not known here")
        times = max(minimum, maximum or 0, 1)
        repeats = part.repeats * times
        if self.linear and repeats > MAX_REPEATS:
            raise PatternError(token.start(), f"repeats a part at most {MAX_REPEATS} times; got {repeats}")
        if not self.linear and part.endless and (maximum is None or maximum > MAX_BOUNDED):
            what = self.text[part.start : token.end()][:40]
            raise PatternError(part.start, f"{what} repeats a repeat, which is exponential")
        endless, empty = part.endless or maximum is None, part.empty or not minimum
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
        # In UTF-8 a class of non-ASCII letters becomes alternatives of byte sequences.
        size += 20 * sum(letter > "\x7f" for letter in written[1:])
        return _Part(start, token.end(), size=size, empty=zero_width)

    def refuse_unknown(self, start: int, written: str) -> None:
        """Refuse flags that an engine does not support; if linear, also other syntax that RE2 lacks."""
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
