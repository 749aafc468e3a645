"""What is said of rows, as SQL expressions that make text of their columns."""

from collections.abc import Collection, Sequence

from transom.stream.alerts import parts_of


def quoted(name: str) -> str:
    """A column by its name, whatever that is."""
    return f'"{name}"'


def text(words: str) -> str:
    """Words as they are."""
    escaped = words.replace("'", "''")
    return f"'{escaped}'"


def shown(column: str, times: Collection[str] = ()) -> str:
    """A value as text, a time to the second.

    Args:
        times: the columns that are times.
    """
    if column in times:
        return f"to_char({quoted(column)}, '%Y-%m-%dT%H:%M:%S')"
    return f"coalesce(cast({quoted(column)} AS varchar), 'null')"


def joined(texts: Sequence[str], between: str) -> list[str]:
    """Texts with words between them."""
    return [piece for one in texts for piece in (text(between), one)][1:]


def one_key(key: Sequence[str]) -> str:
    """A key: the value, or of several columns what each is; null of none."""
    if not key:
        return "cast(NULL AS varchar)"
    each = [shown(key[0])] if len(key) == 1 else [f"concat('{name}=', {shown(name)})" for name in key]
    return f"concat({', '.join(joined(each, ', '))})"


def title_of(stream: str, title: str, times: Collection[str]) -> str:
    """A title with columns in braces: one line, whatever is in these.

    Args:
        times: as in `shown`.
    """
    pieces = [
        piece
        for words, column in parts_of(title)
        for piece in ([text(words)] if words else []) + ([shown(column, times)] if column else [])
    ]
    return one_line(f"concat({', '.join([text(f'{stream}: '), *pieces])})")


def one_line(words: str) -> str:
    """Words with blanks for ends of lines and for what moves a terminal's cursor."""
    return f"regexp_replace({words}, '[[:cntrl:]]+', ' ', 'g')"


def hashed(*texts: str) -> str:
    """A short hash of some texts, one after the other."""
    return f"substr(encode(sha256(concat({', '.join(texts)})), 'hex'), 1, 24)"
