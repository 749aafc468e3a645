"""Texts of a log as a person is shown them: they can do nothing to a terminal."""


def escaped(text: str) -> str:
    r"""A text of characters that are printed: what is none is shown as `\t`, `\x1b`, `\u202e`."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "replace").decode()
        for letter in text
    )
