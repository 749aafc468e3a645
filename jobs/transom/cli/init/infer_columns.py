"""Infer the columns of a log with a detected format."""

from collections.abc import Sequence
from dataclasses import dataclass

from transom.cli.init.infer_path import identifier
from transom.cli.init.infer_time import InferredTime, is_time_name
from transom.cli.init.infer_types import ColumnType, kind_of
from transom.cli.init.log_format import LogFormat
from transom.formats.json.record_paths import AROUND
from transom.formats.record_format import EPOCHS, embedded_format

MAX_COLUMNS = 60
"""Maximum number of declared columns; further ones are listed in a comment."""


@dataclass(frozen=True)
class InferredColumn:
    """A declared column.

    Attributes:
        path: the field with its values.
        sample: some of its texts.
        is_: the expression of a derived column.
        note: a remark for the user.
    """

    name: str
    path: str
    kind: ColumnType
    sample: tuple[str, ...]
    is_: str | None = None
    note: str = ""

    def declared(self) -> object:
        """The declaration in a stream file: the path alone if that is enough."""
        kind = self.kind
        facts: dict[str, object] = {
            "type": kind.type if kind.type != "string" else None,
            "resolution": None if kind.resolution is None else float(kind.resolution),
            "format": kind.form if kind.form != "iso" else None,
            "zone": kind.zone if kind.local else None,
            "missing": list(kind.missing),
        }
        facts = {name: value for name, value in facts.items() if value}
        if self.is_ is not None:
            return {"is": self.is_, **facts}
        return {"from": self.path, **facts} if facts else self.path

    @property
    def words(self) -> str:
        """Sample values as text for the user."""
        if self.note:
            return self.note
        if self.kind.thousands:
            return f"?: text, as the comma in {self.sample[0]} may be a decimal one, or one of thousands"
        texts = [text if len(text) <= 30 else f"{text[:27]}..." for text in self.sample]
        while len(texts) > 1 and sum(map(len, texts)) > 36:
            texts.pop()
        values = ", ".join(texts) or "no values here"
        return f"{values}; {self.kind.doubt}" if self.kind.doubt else values


def columns_of(
    log: LogFormat, when: InferredTime | None, reserved: Sequence[str] = ()
) -> tuple[list[InferredColumn], list[str]]:
    """Return the columns of a log, and the undeclared fields: too many, or with an invalid path.

    Fields of the time are no columns, as `event_time` has their value.

    Args:
        reserved: names that no column may have.
    """
    columns: list[InferredColumn] = []
    undeclared = []
    of_time = () if when is None else when.fields
    used = [*reserved, *of_time]

    def add(name: str, kind: ColumnType, is_: str | None = None, note: str = "") -> None:
        columns.append(InferredColumn(name, path, kind, tuple(dict.fromkeys(texts))[:3], is_, note))
        used.append(name)

    for path, texts in log.fields.items():
        if path in of_time:
            continue
        if not path or "|" in path or path != path.strip() or len(columns) >= MAX_COLUMNS:
            undeclared.append(path)
            continue
        kind = _kind(log, path, texts)
        name = identifier(_own_name(log, path), used)
        if kind.comma is None:
            add(name, kind)
            continue
        text = identifier(f"{name}_text", [*used, name])
        number = f"cast(split_part({text}, ',', 1) || '.' || split_part({text}, ',', 2) as double)"
        add(text, kind)
        note = f"?: derived from {text}, which has a decimal comma"
        add(name, ColumnType("number", resolution=kind.comma), number, note)
    return columns, undeclared


def _own_name(log: LogFormat, path: str) -> str:
    """Return a field's name without the path of its embedded text or of objects around the record."""
    embedded = embedded_format(log.options)
    if embedded is not None and path.startswith(embedded.prefix):
        return path.removeprefix(embedded.prefix)
    return path.removeprefix(AROUND).rpartition("[].")[2] if path.startswith(AROUND) else path


def _kind(log: LogFormat, path: str, texts: Sequence[str]) -> ColumnType:
    """Return the type of a field: declared by the log, or inferred from the texts."""
    kind = kind_of(texts)
    if kind.form in EPOCHS and not is_time_name(path):
        kind = kind_of(texts, counted=True)
    declared = log.types.get(path)
    if declared is None or declared == kind.type or (declared == "string" and kind.type == "timestamp"):
        return kind
    if declared == "timestamp":
        return ColumnType("timestamp", form="epoch")
    if declared == "number":
        return ColumnType("number", resolution=(kind.type == "number" and kind.resolution) or "0.000001")
    return ColumnType(declared)
