r"""Regular expressions of a specification: what every engine reads alike, and none takes for ever over.

Arrow and Spark have engines of their own (RE2's and Java's), and Python's checks the text; so a pattern
holds what all of them know. One that repeats what can be read in several ways is refused, `(a+)+` and
`(a|a)*` as much as `(\w+\s?)*`: an engine that tries again, as Java's does, would take for ever over some
lines. `(?:/\w+)+` can be read in one way only, and stays.

RE2 goes through a line once, whatever the pattern. An engine that tries again goes through it a power of its
length times where repeats without bound follow each other that may take the same text; for it (`linear` is
false) there may be three such in a row, as in `a.*b.*c.*d`, and not four. What it takes for those that stay
is up to the lines: next to nothing for an ordinary one, seconds for one that is made for it.
"""

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, reduce
from itertools import pairwise
from typing import NamedTuple

from transom.formats.ambiguity import NOTHING, Automaton, Part, TooTangled

LONGEST = 10_000
"""Characters of the longest pattern."""
MOST_REPEATS = 1000
"""How many times RE2 repeats a part, also where repeats lie in each other."""
LARGEST = 200_000
"""Steps of RE2's program for a pattern, roughly: it takes a third of a million."""
FEW = 10
"""Turns of a repeat that are told apart where ways to read are counted."""
IN_A_ROW = 3
"""Repeats without bound that may take the same text, one after the other, where an engine tries again."""

_COUNT = re.compile(r"\{([0-9]+)(,?)([0-9]*)\}")
_KNOWN = set("afnrtvdDsSwWbBAx0")
_ZERO_WIDTH = set("bBAZ")
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
        build: makes its part of an automaton, each time a new one.
        repeats: how many times something in it is repeated at most, through repeats in each other.
        size: steps of RE2's program for it, roughly, which writes its repeats out.
    """

    start: int
    build: Callable[[Automaton], Part] = lambda automaton: NOTHING
    repeats: int = 1
    size: int = 1

    @classmethod
    def of(cls, start: int, parts: Sequence["_Part"], build: Callable[[Automaton], Part]) -> "_Part":
        """What some parts are together."""
        repeats = max((part.repeats for part in parts), default=1)
        return cls(start, build, repeats, 1 + sum(part.size for part in parts))


class _Repeat(NamedTuple):
    """A repeat, and where it ends in the pattern."""

    part: _Part
    end: int


@lru_cache(maxsize=256)
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
    whole = scanner.alternatives()
    if linear and whole.size > LARGEST:
        raise PatternError(0, "is too large with its repeats written out")
    for part in (whole, *scanner.aside):
        scanner.judge(part)
    return Pattern(scanner.plain(), tuple(compiled.groupindex))


def beginnings(text: str) -> list[list[tuple[str, str]]]:
    """Return, for each alternative of a pattern, its beginnings and the part that follows each of them.

    Args:
        text: a pattern that `checked` has passed, and whose groups without a name count for nothing.

    Returns:
        For each alternative, from nothing to the whole: the pattern of a beginning, and the text of the part
        behind it, with plain letters taken together; empty behind the whole.
    """
    flags = re.match(r"(?:\(\?[a-zA-Z-]+\))*", text)
    before = flags[0] if flags else ""
    scanner = _Scanner(text, linear=True)
    found = []
    while True:
        start, ends, plain = scanner.at, [scanner.at], [False]
        while scanner.at < len(text) and not scanner.here("|"):
            first = scanner.at
            scanner.repeated(scanner.one())
            ends.append(scanner.at)
            plain.append(re.fullmatch(r"[^\\()\[{.^$]|\\[^\w\s]", text[first : scanner.at]) is not None)
        parts = []
        for at, end in enumerate(ends):
            last = at
            while last + 1 < len(ends) and plain[last + 1]:
                last += 1
            behind = ends[max(last, min(at + 1, len(ends) - 1))]
            head = before if start else ""
            parts.append((head + text[start:end], text[end:behind]))
        found.append(parts)
        if scanner.at >= len(text):
            return found
        scanner.at += 1


class _Scanner:
    """One walk over a pattern that Python has compiled, so that its brackets and counts are sound."""

    def __init__(self, text: str, linear: bool) -> None:
        self.text, self.linear = text, linear
        self.at = 0
        self.unnamed: list[int] = []
        self.repeats: list[_Repeat] = []
        self.counted: dict[int, _Part] = {}
        """Those of more than a few turns as if they had no bound, by their ends."""
        self.aside: list[_Part] = []
        """What is looked at ahead and behind."""
        self.others = "".join(sorted({letter for letter in text if letter > "\x7f"}))
        self.flags = re.ASCII
        for letter, flag in (("i", re.IGNORECASE), ("s", re.DOTALL)):
            if re.search(rf"\(\?[a-zA-Z]*{letter}", text):
                self.flags |= flag

    def judge(self, part: _Part) -> None:
        """Refuses a part that some texts can be read by in too many ways.

        Raises:
            PatternError: it is such a part.
        """
        automaton = Automaton()
        try:
            built = part.build(automaton)
            if automaton.doubles() or self.counted:
                self.refuse_doubling()
            if self.linear:
                return
            # What stands behind the last letter can fail, and all is tried again.
            ended = re.search(r"\$|\\[bBZ]|\(\?<?[=!]", self.text) or part in self.aside
            steps, last = automaton.chain(() if ended else built.last)
        except TooTangled:
            if not self.linear:
                raise PatternError(part.start, "goes on in too many ways to be looked through") from None
            return
        if steps >= IN_A_ROW and last is not None:
            start, what = self.smallest_around(automaton.begins[last])
            rule = f"at most {IN_A_ROW} without bound may take the same text, one after the other"
            raise PatternError(start, f"{what} is a repeat too many: {rule}")

    def refuse_doubling(self) -> None:
        """Refuses the innermost repeat that can be read in too many ways; many turns are like any number.

        Raises:
            PatternError: there is one.
        """
        for part, end in self.repeats:
            automaton = Automaton()
            turns = self.counted.get(end, part)
            built = turns.build(automaton)
            if automaton.doubles() or (turns is not part and built.empty and built.first):
                what = self.text[part.start : end]
                raise PatternError(part.start, f"{what[:40]} repeats what can be read in several ways")

    def smallest_around(self, place: int) -> tuple[int, str]:
        """Where the smallest repeat around a place begins, and its text."""
        around = [(part.start, end) for part, end in self.repeats if part.start <= place < end]
        start, end = min(around, key=lambda span: span[1] - span[0])
        return start, self.text[start:end][:40]

    def plain(self) -> str:
        """The pattern with its groups without a name written `(?:`."""
        cuts = [0, *(at + 1 for at in self.unnamed), len(self.text)]
        return "?:".join(self.text[low:high] for low, high in pairwise(cuts))

    def here(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def alternatives(self) -> _Part:
        start, branches = self.at, [self.sequence()]
        while self.here("|"):
            self.at += 1
            branches.append(self.sequence())
        if len(branches) == 1:
            return branches[0]
        return _Part.of(start, branches, lambda a: a.either(branch.build(a) for branch in branches))

    def sequence(self) -> _Part:
        start, parts = self.at, list[_Part]()
        while self.at < len(self.text) and not self.here("|") and not self.here(")"):
            parts.append(self.repeated(self.one()))
        return _Part.of(start, parts, lambda a: reduce(a.joined, (part.build(a) for part in parts), NOTHING))

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
        times = max(least, most or 0, 1)
        if self.linear and part.repeats * times > MOST_REPEATS:
            rule = f"repeats a part at most {MOST_REPEATS} times; got {part.repeats * times}"
            raise PatternError(at, rule)
        whole = _Part(
            part.start,
            lambda automaton: _turns(automaton, part, least, most),
            part.repeats * times,
            part.size * times,
        )
        self.repeats.append(_Repeat(whole, self.at))
        if most is not None and times > FEW:
            self.counted[self.at] = _Part(part.start, lambda automaton: _turns(automaton, part, 1, None))
        return whole

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
            return self.letter(start, written, 10 + 20 * others)
        if letter == "\\":
            self.escape(start)
            kind = self.text[start + 1]
            self.at += {"x": 4, "u": 6, "U": 10}.get(kind, 2)
            written = self.text[start : self.at]
            if kind in _ZERO_WIDTH or kind.isdigit():  # a back reference takes what it takes
                return _Part(start)
            return self.letter(start, written, 10 if kind in "DSW" else 1)
        self.at += 1
        if letter in "^$":
            return _Part(start)
        return self.letter(start, letter, 10) if letter == "." else self.letter(start, re.escape(letter), 1)

    def letter(self, start: int, written: str, size: int) -> _Part:
        """One letter of those that what is written takes."""
        takes = _taken(written, self.flags, self.others)
        return _Part(start, lambda automaton: automaton.letter(takes, start), size=size)

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
        if sign in ("?=", "?!", "?<=", "?<!"):
            self.aside.append(inside)
            return _Part(start)
        return inside


def _turns(automaton: Automaton, part: _Part, least: int, most: int | None) -> Part:
    """A part some times; of many turns a few, which is no other matter for the ways to read it."""
    least, limit = min(least, FEW), None if most is None else min(most, FEW)
    if limit is None:
        before = [part.build(automaton) for _ in range(least - 1)]
        turns = automaton.again(part.build(automaton))
        last = turns if least else replace(turns, empty=1)
        return reduce(automaton.joined, [*before, last], NOTHING)
    whole = NOTHING
    for turn in reversed(range(limit)):
        whole = automaton.joined(part.build(automaton), whole)
        whole = whole.maybe() if turn >= least else whole
    return whole


_LETTERS = [chr(code) for code in range(256)] + list("Ω٣漢\u2028")
"""Letters of every kind that a class may tell apart, beside those that stand in the pattern itself."""
_ANY = -1


@cache
def _taken(written: str, flags: int, others: str) -> int:
    """The letters that what is written takes, a bit each."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            atom = re.compile(written, flags)
    except re.error:  # an escape that goes on
        return _ANY
    taken = sum(1 << at for at, letter in enumerate([*_LETTERS, *others]) if atom.fullmatch(letter))
    if written == "." and not flags & re.DOTALL:
        taken &= ~(1 << ord("\r"))  # Java's does not take it
    return taken
