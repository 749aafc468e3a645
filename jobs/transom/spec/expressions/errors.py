"""Errors of expressions, with their position."""

from typing import Any


class ExpressionError(ValueError):
    """An invalid expression. Its text marks the position with a caret.

    Attributes:
        text: the expression.
        offset: the position of the error, in characters from 0.
        message: the rule and the value.
        unknown: the unknown column, if that is the error.
    """

    def __init__(self, text: str, offset: int, message: str, unknown: str | None = None) -> None:
        self.unknown = unknown
        self.text, self.offset, self.message = text, max(0, min(offset, len(text))), message
        begin = text.rfind("\n", 0, self.offset) + 1
        line = text[begin:].split("\n", 1)[0]
        line = "".join(letter if letter.isprintable() else " " for letter in line)
        at = self.offset - begin
        cut = max(0, at - 60)  # a long line is shown around the place
        super().__init__(f"{message}\n{line[cut : cut + 100]}\n{' ' * (at - cut)}^")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.offset, self.message, self.unknown)
