"""Text for terminals: counted nouns, and log texts with escaped control characters."""


def counted(number: int, name: str, several: str | None = None) -> str:
    """Return a number with its noun, `1 line`, `2 lines`; `several` is the plural, else it adds an `s`."""
    return f"{number} {name if number == 1 else several or f'{name}s'}"


def escape_control_chars(text: str) -> str:
    r"""Escape characters that are not printable, as `\t`, `\x1b`, `\u202e`."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)
