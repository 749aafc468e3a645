"""Where a pattern stops in lines that it does not match: what is left over, and what would have to follow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.regex_rules import beginnings
from transom.formats.typed_columns import Mask, mask

LONGEST_SHOWN = 60
"""Characters of a part of the pattern that are shown."""
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Stop:
    """Lines that stop at one part of a pattern.

    Attributes:
        where: which lines.
        left: what is left over of each line; of the others any text.
        expected: the part of the pattern that nothing matches there.
    """

    where: Mask
    left: pa.Array
    expected: str


class PatternStops:
    """Tells where a pattern stops."""

    def __init__(self, text: str) -> None:
        """Take a pattern that `checked` has passed, with its groups without a name written `(?:`."""
        self._branches = beginnings(text)

    def stops(self, lines: pa.Array, unmatched: Mask) -> Iterator[Stop]:
        """Yield the parts of the pattern at which lines stop.

        Of several alternatives the one counts that goes on furthest in a line.

        Args:
            lines: strings; null where a line is refused already.
            unmatched: which of them the pattern does not match.
        """
        rows = np.flatnonzero(unmatched)
        texts = lines.take(pa.array(rows))
        size = np.full(len(rows), -1)
        branch, part = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        for number, parts in enumerate(self._branches):
            at, taken = _furthest(texts, [pattern for pattern, _ in parts])
            further = taken > size
            size[further], part[further] = taken[further], at[further]
            branch[further] = number
        left = [text[begin:] for text, begin in zip(texts.to_pylist(), size.tolist(), strict=True)]
        whole = pa.array([None] * len(lines), pa.string())
        places = np.full(len(lines), -1)
        places[rows] = np.arange(len(rows))
        shown = pa.array([f"left over: {text or 'nothing'}" for text in left], pa.string())
        whole = shown.take(pa.array(places, mask=places < 0))
        for number, place in sorted({*zip(branch.tolist(), part.tolist(), strict=True)}):
            where = np.zeros(len(lines), dtype=bool)
            where[rows[(branch == number) & (part == place)]] = True
            following = self._branches[number][place][1]
            cut = following if len(following) <= LONGEST_SHOWN else f"{following[:LONGEST_SHOWN]}..."
            words = "a blank" if cut.strip(" ") == "" and cut else "the end of the line"
            yield Stop(where, whole, cut if cut.strip(" ") else words)


def _furthest(texts: pa.Array, patterns: Sequence[str]) -> tuple[Int64s, Int64s]:
    """Return the longest beginning that each text begins with, by its number, and how much it takes of it.

    A text that a longer beginning matches is matched by each shorter one, so halving finds it.
    """
    low = np.zeros(len(texts), dtype=np.int64)
    high = np.full(len(texts), len(patterns) - 1, dtype=np.int64)
    while (low < high).any():
        middle = (low + high + 1) // 2
        for at in np.unique(middle[low < high]).tolist():
            here = np.flatnonzero((middle == at) & (low < high))
            matched = mask(pc.is_valid(_matched_prefix(texts.take(pa.array(here)), patterns[at])))
            low[here[matched]] = at
            high[here[~matched]] = at - 1
    size = np.zeros(len(texts), dtype=np.int64)
    for at in np.unique(low).tolist():
        here = np.flatnonzero(low == at)
        taken = pc.struct_field(_matched_prefix(texts.take(pa.array(here)), patterns[at]), "beginning")
        size[here] = pc.fill_null(pc.utf8_length(taken), 0).to_numpy(zero_copy_only=False)
    return low, size


def _matched_prefix(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.extract_regex(texts, f"^(?P<beginning>{pattern})")
