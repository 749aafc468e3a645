"""Format the results of a reproduction."""

from collections.abc import Iterable, Sequence


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
