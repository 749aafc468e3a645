"""Lint the prose of the repository, by rules of its own and by those of proselint.

Usage: python -m prose_lint [FILE...]
"""

import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from proselint.checks import __register__ as general_checks
from proselint.config import Config
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

from .style import Problem, problems
from .texts import Text, texts

ROOT = Path(__file__).resolve().parents[2]
PLACES = (
    "*.md", "docs/**/*.md",
    "jobs/**/*.py", "dags/**/*.py", "plugins/**/*.py", "tools/**/*.py",
    "jobs/**/*.yaml", "schemas/**/*.yaml", "docker/**/*.yaml",
)  # fmt: skip

GENERAL = {
    "archaism": True, "cliches": True, "hedging": True, "industrial_language": True, "malapropisms": True,
    "misc": True, "mixed_metaphors": True, "mondegreens": True, "needless_variants": True, "nonwords": True,
    "oxymorons": True, "redundancy": True, "skunked_terms": True, "social_awareness": True, "spelling": True,
    "terms": True, "uncomparables": True,
    # A jam on a freeway, and the name of a typeface.
    "cliches.misc.write_good": False, "misc.preferred_forms": False,
}  # fmt: skip
"""Checks of proselint. Those of typography, dates and repeated words also match code and tables."""

# The most specific names come first: so proselint expects them.
_CONFIG = Config(max_errors=1000, checks=dict(sorted(GENERAL.items(), key=lambda item: -item[0].count("."))))
_BREAK = "\n\n"


def main(names: Sequence[str]) -> int:
    """Print the problems of the files, of all without names. Return 1 if there is one, else 0."""
    CheckRegistry().register_many(general_checks)
    paths = [Path(name).resolve() for name in names] or [
        path for place in PLACES for path in sorted(ROOT.glob(place))
    ]
    count = 0
    for path in paths:
        found = list(texts(path))
        for one in sorted({*general_problems(found), *(one for text in found for one in problems(text))}):
            count += 1
            place = f"{path.relative_to(ROOT)}:{one.line}"
            print(f"{place}: {one.rule}: {' '.join(one.quote.split())!r}: {one.advice}")
    print(
        f"prose: {count} problems in {len(paths)} files" if count else f"prose: {len(paths)} files are clean"
    )
    return 1 if count else 0


def general_problems(found: Sequence[Text]) -> Iterator[Problem]:
    """Yield what proselint finds in the texts of a file; they are one page, as a call takes milliseconds."""
    starts = [*accumulate((len(text.text) + len(_BREAK) for text in found), initial=0)]
    for result in LintFile("page", _BREAK.join(text.text for text in found)).lint(_CONFIG):
        # proselint adds a line before the page.
        at = result.check_result.span[0] - 1
        text = found[bisect_right(starts, at) - 1]
        before = text.text[: max(at - starts[bisect_right(starts, at) - 1], 0)]
        yield Problem(
            text.line + before.count("\n"),
            result.check_result.check_path,
            before[-30:],
            result.check_result.message,
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
