"""Format the results of a reproduction."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from bench.published import publish


def verdict(so: bool, text: str) -> str:
    """Return a line with a claim, and whether the results confirm it."""
    return f"{'yes' if so else 'NO'}: {text}"


def all_so(verdicts: Iterable[str]) -> bool:
    """Return whether all claims are confirmed."""
    return all(text.startswith("yes") for text in verdicts)


def markdown(head: Sequence[str], lines: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(map(str, line))} |" for line in lines),
    ]


def finish(name: str, folder: Path, claims: Sequence[str]) -> NoReturn:
    """Print where the report is, and exit with 1 if a claim is not confirmed.

    The claims of a run without options replace the checked-in ones: options give it another size.

    Args:
        folder: the folder of the report and the plots.
    """
    if not sys.argv[1:]:
        checked = [{"claim": text.partition(": ")[2], "met": all_so([text])} for text in claims]
        publish(f"reproduce-{name}", {"claims": checked})
    print(f"\ntables and plots: {folder}/report.md")
    good = all_so(claims)
    print(f"reproduce-{name}: {'as in the paper' if good else 'NOT all as in the paper'}")
    sys.exit(not good)
