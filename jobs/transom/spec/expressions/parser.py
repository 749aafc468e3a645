"""Parse an expression with sqlglot: return a syntax tree, or raise an error with its position."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

MAX_LENGTH = 4000
"""Maximum number of characters of an expression."""
MAX_DEPTH = 20
"""Maximum nesting of parentheses, cases and operators."""


class ExpressionError(ValueError):
    """An invalid expression. Its text marks the position with a caret.

    Attributes:
        text: the expression.
        offset: the position of the error, in characters from 0.
        message: the rule and the value.
        unknown: the unknown column, if that is the error.
    """

    def __init__(self, text: str, offset: int, message: str, unknown: str | None = None) -> None:
        self.text, self.message, self.unknown = text, message, unknown
        self.offset = max(0, min(offset, len(text)))
        begin = text.rfind("\n", 0, self.offset) + 1
        line = text[begin:].split("\n", 1)[0]
        line = "".join(letter if letter.isprintable() else " " for letter in line)
        at = self.offset - begin
        cut = max(0, at - 60)  # a long line is shown around the place
        super().__init__(f"{message}\n{line[cut : cut + 100]}\n{' ' * (at - cut)}^")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.offset, self.message, self.unknown)


def parse(text: str) -> Any:
    """Return the syntax tree; raise an ExpressionError if it is no expression, too long or too deep."""
    # This import takes half a second; a stream without expressions does not need it.
    from sqlglot import errors, exp, parser
    from sqlglot.tokenizer_core import TokenType

    if not text.strip():
        raise ExpressionError(text, 0, "is empty")
    if len(text) > MAX_LENGTH:
        raise ExpressionError(text, MAX_LENGTH, f"must be at most {MAX_LENGTH} characters; got {len(text)}")
    for offset, letter in enumerate(text):
        if "\ud800" <= letter <= "\udfff" or letter == "\0":
            raise ExpressionError(text, offset, f"must not hold the character {letter!a}")
    try:
        tokens = _tokenizer_class()().tokenize(text)
    except errors.TokenError:
        # The tokenizer only refuses a quote or a comment without its end.
        start = max(text.rfind(mark) for mark in ("'", '"', "/*", "{#", "$"))
        raise ExpressionError(text, start, "a quote or a comment without its end") from None
    _check_tokens(text, tokens, TokenType)
    try:
        # An error contains all of the text before its token, so its length is the position.
        trees = parser.Parser(error_message_context=MAX_LENGTH).parse_into(exp.Condition, tokens, text)
    except errors.ParseError as error:
        detail = error.errors[0]
        rule = _rule(str(detail["description"]), str(detail["highlight"]))
        raise ExpressionError(text, len(detail["start_context"]), rule) from None
    except RecursionError:
        raise ExpressionError(text, 0, "is nested too deeply") from None
    except Exception:
        # Odd text makes the parser raise many kinds of errors (AttributeError, IndexError). In any case the
        # text is not an expression.
        raise ExpressionError(text, 0, "cannot be read as an expression") from None
    if len(trees) != 1 or trees[0] is None:
        raise ExpressionError(text, 0, "must be one expression")
    return trees[0]


@cache
def _tokenizer_class() -> Any:
    from sqlglot.tokens import Tokenizer

    class Words(Tokenizer):
        """A tokenizer in which words such as call and show, which start a command in sqlglot, are names."""

        KEYWORDS: ClassVar = {w: k for w, k in Tokenizer.KEYWORDS.items() if k not in Tokenizer.COMMANDS}
        COMMANDS: ClassVar = set()

    return Words


def _check_tokens(text: str, tokens: Sequence[Any], kinds: Any) -> None:
    depth = 0
    for index, token in enumerate(tokens):
        if token.comments:
            at = min((text.find(mark) for mark in ("--", "/*", "{#") if mark in text), default=token.start)
            raise ExpressionError(text, at, "comments are not allowed")
        if token.token_type == kinds.SEMICOLON:
            raise ExpressionError(text, token.start, "must be one expression, without a semicolon")
        if token.token_type in (kinds.NATIONAL_STRING, kinds.RAW_STRING, kinds.HEREDOC_STRING):
            raise ExpressionError(text, token.start, "text is in plain single quotes")
        opens = token.token_type in (kinds.L_PAREN, kinds.CASE, kinds.L_BRACKET, kinds.L_BRACE)
        closes = token.token_type in (kinds.R_PAREN, kinds.END, kinds.R_BRACKET, kinds.R_BRACE)
        depth += opens - closes
        plain = token.token_type not in (kinds.STRING, kinds.IDENTIFIER)
        follows = tokens[index + 1].token_type if index + 1 < len(tokens) else None
        # Without a parenthesis the parser would read a statement, and log that.
        if plain and token.text.lower() == "if" and follows != kinds.L_PAREN:
            raise ExpressionError(text, token.start, "if needs a parenthesis: if(condition, value, value)")
        # The parser would join two adjacent texts, as after a forgotten comma in a list.
        if index and token.token_type == kinds.STRING == tokens[index - 1].token_type:
            raise ExpressionError(text, token.start, "a text after a text; is a comma or || missing?")
        if depth > MAX_DEPTH:
            raise ExpressionError(text, token.start, f"is nested more than {MAX_DEPTH} deep")


def _rule(message: str, token: str) -> str:
    """Return the message for an error of the parser; `token` is where it stopped."""
    missing = re.match(r"Expect(?:ing|ed) (\S+)", message)
    too_many = re.match(r"The number of provided arguments \((\d+)\) is greater than .* \((\d+)\)", message)
    if too_many is not None:
        return f"too many values for this function: at most {too_many[2]}; got {too_many[1]}"
    if not token:
        return message
    if missing is not None:
        return f"{missing[1].lower()} is missing after {token!r}"
    required = message.startswith("Required")
    return f"something is missing next to {token!r}" if required else f"unexpected {token!r}"
