r"""Regular expressions of a specification: what every engine reads alike, and none takes for ever over.

Arrow and Spark have engines of their own (RE2's and Java's), and Python's checks the text; so a pattern
holds what all of them know. One that repeats what itself repeats without bound is refused, `(a+)+` as
much as `(\w+\s?)*`: an engine that tries again would take for ever over some lines. Where each turn of
the outer repeat begins or ends with a letter that nothing else in it takes, as in `(?:/\w+)+`, there is
one way only, and it stays.
"""

import re
import warnings
from dataclasses import dataclass, field
from itertools import pairwise

LONGEST = 10_000
"""Characters of the longest pattern."""
MOST_REPEATS = 1000
"""How many times RE2 repeats a part, also where repeats lie in each other."""
LARGEST = 200_000
"""Steps of RE2's program for a pattern, roughly: it takes a third of a million."""
FEW = 10
"""Repeats of a part that itself repeats without bound which still come to an end."""

_COUNT = re.compile(r"\{([0-9]+)(,?)([0-9]*)\}")
_KNOWN = set("afnrtvdDsSwWbBAx0")
_ZERO_WIDTH = set("bBA")
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
class Pattern:
    """A pattern that has been checked.

    Attributes:
        text: the pattern, in which groups without a name count for nothing.
        groups: the names of its groups, in order.
    """

    text: str
    groups: tuple[str, ...]


@dataclass
class _Part:
    """A part of a pattern.

    Attributes:
        atoms: what in it takes one character, each as written.
        ends: the single letter with which every match begins, and the one with which it ends, if such.
        unbounded: whether something in it is repeated without bound.
        repeats: how many times something in it is repeated at most, through repeats in each other.
        size: steps of RE2's program for it, roughly, which writes its repeats out.
    """

    start: int
    atoms: list[str] = field(default_factory=list)
    ends: tuple[str | None, str | None] = (None, None)
    unbounded: bool = False
    repeats: int = 1
    size: int = 1

    def take(self, part: "_Part") -> None:
        """Counts in what a part of it is."""
        self.atoms += part.atoms
        self.unbounded |= part.unbounded
        self.repeats = max(self.repeats, part.repeats)
        self.size += part.size


def checked(text: str, linear: bool = True) -> Pattern:
    """Return a pattern that Python compiles and that comes to an end on every line.

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
    scanner = _Scanner(text, linear)
    size = scanner.alternatives().size
    if linear and size > LARGEST:
        raise PatternError(0, "is too large with its repeats written out")
    return Pattern(scanner.plain(), tuple(compiled.groupindex))


class _Scanner:
    """One walk over a pattern that Python has compiled, so that its brackets and counts are sound."""

    def __init__(self, text: str, linear: bool) -> None:
        self.text, self.linear = text, linear
        self.at = 0
        self.unnamed: list[int] = []

    def plain(self) -> str:
        """The pattern with its groups without a name written `(?:`."""
        cuts = [0, *(at + 1 for at in self.unnamed), len(self.text)]
        return "?:".join(self.text[low:high] for low, high in pairwise(cuts))

    def here(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def alternatives(self) -> _Part:
        whole = _Part(self.at)
        branches = [self.sequence()]
        while self.here("|"):
            self.at += 1
            branches.append(self.sequence())
        for branch in branches:
            whole.take(branch)
        whole.ends = branches[0].ends if len(branches) == 1 else (None, None)
        return whole

    def sequence(self) -> _Part:
        whole, parts = _Part(self.at), []
        while self.at < len(self.text) and not self.here("|") and not self.here(")"):
            part = self.repeated(self.one())
            parts.append(part)
            whole.take(part)
        if parts:
            whole.ends = parts[0].ends[0], parts[-1].ends[1]
        return whole

    def repeated(self, part: _Part) -> _Part:
        """What a part is with the repeat that follows it."""
        at = self.at
        count = _COUNT.match(self.text, at)
        if count is not None:
            least, most = int(count[1]), int(count[3]) if count[3] else None if count[2] else int(count[1])
            self.at = count.end()
        elif self.text[at : at + 1] in ("*", "+", "?"):
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self.text[at]]
            self.at += 1
        else:
            return part
        if self.linear and self.here("+"):
            raise PatternError(self.at, "a possessive repeat is not known here")
        if self.here("?") or self.here("+"):
            self.at += 1
        times = max(least, most or 0)
        part.repeats *= max(times, 1)
        part.size *= max(times, 1)
        if self.linear and part.repeats > MOST_REPEATS:
            raise PatternError(at, f"repeats a part at most {MOST_REPEATS} times; got {part.repeats}")
        if part.unbounded and (most is None or most > FEW) and not self.one_way(part):
            what = self.text[part.start : self.at]
            raise PatternError(part.start, f"{what[:40]} repeats what itself repeats without bound")
        part.unbounded |= most is None
        part.ends = (None, None)
        return part

    def one_way(self, part: _Part) -> bool:
        """Whether a letter that nothing else in a part takes tells where each turn begins or ends."""
        return any(
            letter is not None and sum(_takes(atom, letter) for atom in part.atoms) == 1
            for letter in part.ends
        )

    def one(self) -> _Part:
        """A group, a class, an escape or a letter."""
        start, letter = self.at, self.text[self.at]
        if letter == "(":
            return self.group()
        if letter == "[":
            end = self.at + (3 if self.here("[^]") else 2 if self.here("[]") else 1)
            while self.text[end] != "]":
                if self.text[end] == "\\":
                    self.escape(end)
                    end += 1
                end += 1
            self.at = end + 1
            written = self.text[start : self.at]
            # In UTF-8 a class of other letters than ASCII's is one of bytes after bytes.
            others = sum(letter > "\x7f" for letter in written)
            return _Part(start, [written], size=10 + 20 * others)
        if letter == "\\":
            self.escape(start)
            kind = self.text[start + 1]
            self.at += 4 if kind == "x" else 2
            written = self.text[start : self.at]
            if kind in _ZERO_WIDTH:
                return _Part(start)
            exact = kind if not kind.isalnum() else None
            return _Part(start, [written], (exact, exact), size=10 if kind in "DSW" else 1)
        self.at += 1
        if letter in "^$":
            return _Part(start)
        exact = letter if letter != "." else None
        size = 1 if exact else 10
        return _Part(start, [re.escape(letter) if exact else letter], (exact, exact), size=size)

    def escape(self, at: int) -> None:
        letter = self.text[at + 1]
        if self.linear and letter.isalnum() and letter not in _KNOWN:
            what = "a back reference" if letter.isdigit() else f"\\{letter}"
            raise PatternError(at, f"{what} is not known here")

    def group(self) -> _Part:
        start = self.at
        for sign, what in _HAS_NOT.items():
            if self.linear and self.text.startswith(sign, start + 1):
                raise PatternError(start, f"{what} is not known here")
        opening = re.compile(
            r"\((\?P<\w+>|\?[a-zA-Z-]*:|\?[a-zA-Z-]+\)|\?<?[=!]|\?>|\?P=\w+\)|\?\(\w+\)|\?#)?"
        )
        found = opening.match(self.text, start)
        assert found is not None  # Python has compiled it
        sign = found[1] or ""
        self.at = found.end()
        flags = re.fullmatch(r"\?([a-zA-Z-]*)[:)]", sign)
        if flags and set(flags[1]) - set("ims-"):
            raise PatternError(start, f"of the flags, i, m and s are known here; got {flags[1]}")
        if sign == "?#":
            self.at = self.text.index(")", self.at) + 1
            return _Part(start)
        if sign.endswith(")") and not sign.startswith("?("):
            return _Part(start)
        if not sign:
            self.unnamed.append(start)
        inside = self.alternatives()
        self.at += 1
        inside.start = start
        return inside


def _takes(atom: str, letter: str) -> bool:
    """Whether what is written may take a letter, of either case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.fullmatch(atom, letter, re.IGNORECASE | re.DOTALL) is not None
