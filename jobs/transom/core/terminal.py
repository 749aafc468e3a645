"""Text for terminals: counted nouns, and log texts with escaped control characters."""


def counted(number: int, name: str, several: str | None = None) -> str:
    """Return a number with its noun; `several` is the plural, by default with an `s`.

    >>> counted(1, "line"), counted(2, "line"), counted(2, "entry", "entries")
    ('1 line', '2 lines', '2 entries')
    """
    return f"{number} {name if number == 1 else several or f'{name}s'}"


def escape_control_chars(text: str) -> str:
    r"""Escape characters that are not printable, such as `\t`, `\x1b`, `\u202e`.

    >>> print(escape_control_chars("a\tb"))
    a\tb
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)
