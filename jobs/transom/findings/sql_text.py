"""What is said of rows, as SQL expressions that make text of their columns."""

from collections.abc import Collection, Sequence
from typing import Literal

from transom.spec.titles import parts_of


def quoted(name: str) -> str:
    """A column by its name, whatever that is."""
    return f'"{name}"'


def text(words: str) -> str:
    """Words as they are."""
    escaped = words.replace("'", "''")
    return f"'{escaped}'"


def shown(column: str, times: Collection[str] = (), to: Literal["second", "minute"] = "second") -> str:
    """A value as text: a time to the second or minute, a whole number without decimals.

    Args:
        times: the columns that are times.
    """
    if column in times:
        seconds = ":%S" if to == "second" else ""
        return f"to_char({quoted(column)}, '%Y-%m-%dT%H:%M{seconds}')"
    return _number(quoted(column))


def _number(value: str) -> str:
    """A value as text; a float that is whole without its `.0`."""
    words = f"cast({value} AS varchar)"
    whole = f"arrow_typeof({value}) = 'Float64'"
    return f"coalesce(CASE WHEN {whole} THEN regexp_replace({words}, '[.]0$', '') ELSE {words} END, 'null')"


def ranged(least: str, most: str) -> str:
    """Two values of one type as text, floats with four digits: `3 to 12`, and `3` where they are equal.

    Args:
        least, most: SQL of the smaller and the larger one.
    """
    few = [_rounded(value) for value in (least, most)]
    return f"CASE WHEN {few[0]} = {few[1]} THEN {few[0]} ELSE concat({few[0]}, ' to ', {few[1]}) END"


def _rounded(value: str) -> str:
    """A value as text, a float with four digits."""
    double = f"arrow_cast({value}, 'Float64')"
    digits = f"cast(least(15, greatest(0, 3 - floor(log10(abs({double}))))) AS int)"
    few = f"CASE WHEN {double} = 0 OR isnan({double}) THEN {double} + 0 ELSE round({double}, {digits}) END"
    return f"CASE WHEN arrow_typeof({value}) = 'Float64' THEN {_number(few)} ELSE {_number(value)} END"


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
