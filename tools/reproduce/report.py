"""How a reproduction says what it has shown."""

from collections.abc import Iterable, Sequence


def verdict(so: bool, text: str) -> str:
    """One line of what is claimed, and whether it is so here."""
    return f"{'yes' if so else 'NO'}: {text}"


def all_so(said: Iterable[str]) -> bool:
    """Whether all of it is."""
    return all(text.startswith("yes") for text in said)


def markdown(head: Sequence[str], lines: Iterable[Sequence[object]]) -> list[str]:
    """A table."""
    return [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(map(str, line))} |" for line in lines),
    ]
