"""Texts as a person reads them: numbers of things, and a log's texts, which do nothing to a terminal."""


def counted(number: int, name: str, several: str | None = None) -> str:
    """Return a number of things: `1 line`, `2 lines`.

    Args:
        several: the name of more than one; None adds an `s`.
    """
    return f"{number} {name if number == 1 else several or f'{name}s'}"


def escape_control_chars(text: str) -> str:
    r"""A text of characters that are printed: what is none is shown as `\t`, `\x1b`, `\u202e`."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "replace").decode()
        for letter in text
    )
