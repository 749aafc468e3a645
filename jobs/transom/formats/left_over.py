"""Find where a pattern stops in lines that it does not match: the remaining text, and the expected part."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.regex_rules import beginnings
from transom.formats.typed_columns import Mask, mask

LONGEST_SHOWN = 60
"""Maximum number of shown characters of a part of the pattern."""
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Stop:
    """Lines that stop at one part of a pattern.

    Attributes:
        where: which lines.
        remaining: the remaining text of each of these lines; any text for the others.
        expected: the part of the pattern that does not match there.
    """

    where: Mask
    remaining: pa.Array
    expected: str


class PatternStops:
    """Finds where a pattern stops."""

    def __init__(self, text: str) -> None:
        """Take a pattern that `checked` has passed, with its groups without a name written `(?:`."""
        self._branches = beginnings(text)

    def stops(self, lines: pa.Array, unmatched: Mask) -> Iterator[Stop]:
        """Yield the parts of the pattern at which lines stop.

        Of several alternatives the one that matches most of a line counts.

        Args:
            lines: strings; null for a line that is already refused.
            unmatched: which of them the pattern does not match.
        """
        rows = np.flatnonzero(unmatched)
        texts = lines.take(pa.array(rows))
        size = np.full(len(rows), -1)
        branch, part = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        for number, parts in enumerate(self._branches):
            at, reached = _furthest(texts, [pattern for pattern, _ in parts])
            further = reached > size
            size[further], part[further] = reached[further], at[further]
            branch[further] = number
        remaining = [text[begin:] for text, begin in zip(texts.to_pylist(), size.tolist(), strict=True)]
        whole = pa.array([None] * len(lines), pa.string())
        places = np.full(len(lines), -1)
        places[rows] = np.arange(len(rows))
        messages = pa.array([f"left over: {text or 'nothing'}" for text in remaining], pa.string())
        whole = messages.take(pa.array(places, mask=places < 0))
        for number, place in sorted({*zip(branch.tolist(), part.tolist(), strict=True)}):
            where = np.zeros(len(lines), dtype=bool)
            where[rows[(branch == number) & (part == place)]] = True
            following = self._branches[number][place][1]
            cut = following if len(following) <= LONGEST_SHOWN else f"{following[:LONGEST_SHOWN]}..."
            words = "a blank" if cut.strip(" ") == "" and cut else "the end of the line"
            yield Stop(where, whole, cut if cut.strip(" ") else words)


def _furthest(texts: pa.Array, patterns: Sequence[str]) -> tuple[Int64s, Int64s]:
    """Return the number of the longest matching beginning for each text, and the number of characters it
    matches.

    A text that matches a longer beginning also matches each shorter one, so bisection works.
    """
    low = np.zeros(len(texts), dtype=np.int64)
    high = np.full(len(texts), len(patterns) - 1, dtype=np.int64)
    while (low < high).any():
        middle = (low + high + 1) // 2
        for at in np.unique(middle[low < high]).tolist():
            rows = np.flatnonzero((middle == at) & (low < high))
            matched = mask(pc.is_valid(_matched_prefix(texts.take(pa.array(rows)), patterns[at])))
            low[rows[matched]] = at
            high[rows[~matched]] = at - 1
    size = np.zeros(len(texts), dtype=np.int64)
    for at in np.unique(low).tolist():
        rows = np.flatnonzero(low == at)
        beginning = pc.struct_field(_matched_prefix(texts.take(pa.array(rows)), patterns[at]), "beginning")
        size[rows] = pc.fill_null(pc.utf8_length(beginning), 0).to_numpy(zero_copy_only=False)
    return low, size


def _matched_prefix(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.extract_regex(texts, f"^(?P<beginning>{pattern})")
