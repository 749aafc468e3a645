"""Lint the prose of the repository, by rules of its own and by those of proselint.

Usage: python -m prose_lint [FILE...]
"""

import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from os.path import relpath
from pathlib import Path

from proselint.checks import __register__ as general_checks
from proselint.config import Config
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

from transom.core.terminal import counted

from .style import Problem, problems
from .texts import Text, texts

ROOT = Path(__file__).resolve().parents[2]
PLACES = (
    "*.md", "docs/**/*.md",
    "jobs/**/*.py", "dags/**/*.py", "plugins/**/*.py", "tools/**/*.py",
    "jobs/**/*.yaml", "docker/**/*.yaml", "schemas/examples/*.yaml",
    # A user's own stream files may be in the same folder.
    "schemas/streams/conn.yaml", "schemas/streams/web.yaml",
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
CheckRegistry().register_many(general_checks)


def main(names: Sequence[str]) -> int:
    """Print the problems of the files, of all without names. Return 1 if there is one, else 0."""
    every = (path for place in PLACES for path in sorted(ROOT.glob(place)))
    paths = [Path(name).resolve() for name in names] or list(every)
    count = 0
    for path in paths:
        found = list(texts(path))
        for one in sorted({*general_problems(found), *(one for text in found for one in problems(text))}):
            count += 1
            quote = " ".join(one.quote.split())
            print(f"{relpath(path, ROOT)}:{one.line}: {one.rule}: {quote!r}: {one.advice}")
    print(f"prose: {counted(count, 'problem')} in {counted(len(paths), 'file')}")
    return 1 if count else 0


def general_problems(found: Sequence[Text]) -> Iterator[Problem]:
    """Yield what proselint finds in the texts of a file; they are one page, as a call takes milliseconds."""
    starts = [*accumulate((len(text.text) + len(_BREAK) for text in found), initial=0)]
    page = _BREAK.join(text.text for text in found)
    for result, _ in LintFile("page", page).lint(_CONFIG):
        # proselint adds a line before the page.
        begin, end = (max(position - 1, 0) for position in result.span)
        number = bisect_right(starts, begin) - 1
        line = found[number].line + page.count("\n", starts[number], begin)
        yield Problem(line, result.check_path, page[begin:end], result.message)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
