"""Find the texts of a file: Markdown; docstrings, comments and messages of Python; YAML's descriptions."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

DESCRIPTIVE_KEYS = frozenset({"description", "meaning", "title"})
"""Keys of YAML files whose values are prose."""

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_YAML_COMMENT = re.compile(r"(?:^|\s)#(.*)$")
_CODE = re.compile(
    r"^(?P<fence>[ ]*```).*?^[ ]*```$"  # fenced code
    r"|^[ ]*>>>.*?(?=\n[ ]*\n|\Z)"  # examples of docstrings, up to a blank line
    r"|(?<!`)(?P<ticks>`{1,2})(?!`).+?(?<!`)(?P=ticks)(?!`)"  # code within a line
    r"|<[a-z/!][^>]*>|\]\([^)]*\)|https?://\S+",  # tags and targets of links
    re.MULTILINE | re.DOTALL,
)

_WORDS = re.compile(r"[A-Za-z]{2,}.* |^ .*[A-Za-z]{2,}")
"""A word of a string with a blank; other strings are names and keys."""
_PATTERN_OR_QUERY = re.compile(r"\\|\(\?|[A-Z]{4,} .*(FROM|ON) ")

Kind = Literal["page", "docstring", "comment", "message", "description"]


@dataclass(frozen=True)
class Text:
    """A text of a file.

    Attributes:
        path: the file.
        line: the text's first line, from 1.
        kind: what it is.
        text: its prose; code is replaced, and lines are as in the file.
        of: for a docstring, the kind of node that it documents.
    """

    path: Path
    line: int
    kind: Kind
    text: str
    of: str = ""


def texts(path: Path) -> Iterator[Text]:
    """Yield the texts of a Markdown, Python or YAML file."""
    source = path.read_text()
    if path.suffix == ".md":
        yield Text(path, 1, "page", without_code(source))
    elif path.suffix == ".py":
        tree = ast.parse(source)
        yield from _docstrings(path, tree)
        yield from _comments(path, source)
        yield from _messages(path, tree)
    else:
        yield from _yaml_comments(path, source)
        yield from _yaml_values(path, yaml.compose(source, yaml.SafeLoader))


def without_code(text: str) -> str:
    """Replace code by the word `code`, and fenced code by nothing; lines stay."""

    def replaced(match: re.Match[str]) -> str:
        code = match[0]
        word = "code" if code[0] == "`" and not match["fence"] else ""
        return word + "\n" * code.count("\n")

    return _CODE.sub(replaced, text)


def _docstrings(path: Path, tree: ast.Module) -> Iterator[Text]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for index, statement in enumerate(body):
            if _is_text(statement):
                of = type(node).__name__ if index == 0 and isinstance(node, _DOCUMENTED) else "attribute"
                yield Text(
                    path, statement.lineno, "docstring", without_code(_unlisted(statement.value.value)), of
                )


def _unlisted(docstring: str) -> str:
    """Replace names of parameters by `name`, and indented paragraphs, which are formulas, by nothing."""
    docstring = re.sub(r"^( +)\w+: ", r"\1name: ", docstring, flags=re.MULTILINE)
    indents = [len(line) - len(line.lstrip()) for line in docstring.splitlines()[1:] if line.strip()]
    formula = re.compile(rf"(?<=\n\n) {{{min(indents, default=0) + 4},}}\S.*?(?=\n\s*\n|\Z)", re.DOTALL)
    return formula.sub(lambda match: "\n" * match[0].count("\n"), docstring)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _comments(path: Path, source: str) -> Iterator[Text]:
    """Yield comments; those of lines that follow each other are one."""
    first, lines = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or re.match(r"#( type:| noqa| fmt:|!|:)", token.string):
            continue
        line = token.start[0]
        alone = not token.line[: token.start[1]].strip()
        if lines and (line != first + len(lines) or not alone):
            yield Text(path, first, "comment", without_code("\n".join(lines)))
            lines = []
        if not lines:
            first = line
        lines.append(token.string.lstrip("# "))
    if lines:
        yield Text(path, first, "comment", without_code("\n".join(lines)))


def _messages(path: Path, tree: ast.Module) -> Iterator[Text]:
    """Yield strings of several words. An inserted value is `{}`; patterns and queries are omitted."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            text = "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            text = node.value
        else:
            continue
        if _WORDS.search(text) and not _PATTERN_OR_QUERY.search(text):
            yield Text(path, node.lineno, "message", without_code(text))


def _yaml_comments(path: Path, source: str) -> Iterator[Text]:
    for line, text in enumerate(source.splitlines(), 1):
        if match := _YAML_COMMENT.search(text):
            yield Text(path, line, "comment", without_code(match[1].strip()))


def _yaml_values(path: Path, node: yaml.Node | None) -> Iterator[Text]:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _yaml_values(path, item)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(value, yaml.ScalarNode) and key.value in DESCRIPTIVE_KEYS:
                yield Text(path, value.start_mark.line + 1, "description", without_code(value.value))
            yield from _yaml_values(path, value)
