"""Frames as findings: how each is told, by the stream's words. No Spark."""

from transom.core.intervals import HOUR
from transom.features.frames import validate as frame_columns
from transom.features.frames.spec import Frame
from transom.findings import sync as mirroring
from transom.findings.entities import Lasting, Told
from transom.findings.sql_text import shown, text
from transom.ledger.ledger import Ledger
from transom.spec.stream import Stream

STAGE, TABLE, KIND = "frame", "frames", "frame"
TIMES = ("start", "end", "peak_time")


def publish(ledger: Ledger, stream: Stream) -> bool:
    """Brings the findings up to date with the frames, as they stand.

    Returns:
        Whether something was written.
    """
    told = {name: _told(stream, name, said) for name, said in stream.blocks(Frame).items() if said.is_finding}
    return mirroring.publish(ledger, Lasting(STAGE, TABLE, KIND, stream.name, told))


def _told(stream: Stream, name: str, said: Frame) -> Told:
    key = frame_columns.key(stream, name)
    title = said.title
    if title is None:
        of = f" of {', '.join(f'{{{column}}}' for column in key)}" if key else ""
        title = f"{name}{of}, {{start}} to {{end}}"
    value = frame_columns.value(stream, name)
    return Told(
        name=name,
        key=key,
        id="frame_id",
        new="new_records",
        columns=("length_s", "records", "missing", "peak", "peak_time", "mean"),
        times=TIMES,
        severity=said.severity,
        title=title,
        evidence=_evidence(said, value),
        reach=-(-said.silence // HOUR),
    )


def _evidence(said: Frame, value: str | None) -> list[str]:
    so_far = "CASE WHEN __ongoing THEN ' so far' ELSE '' END"
    readings = "CASE records WHEN 1 THEN '1 reading' ELSE concat(records, ' readings') END"
    between = "" if said.known else " between them"
    missing = f"CASE missing WHEN 0 THEN '' ELSE concat(', ', missing, ' missing{between}') END"
    if said.known:
        silent = f"concat('no reading since ', {shown('start', TIMES)})"
        readings = f"CASE records WHEN 0 THEN {silent} ELSE {readings} END"
    told = [text(f"the rule: {said.rule}"), f"concat({readings}, {missing}, {so_far})"]
    if value is not None:
        peak = f"'{value}: at most ', {shown('peak')}, ' at ', {shown('peak_time', TIMES)}"
        figures = f"concat({peak}, ', on average ', cast(round(mean, 3) AS varchar))"
        # Readings may be without a value, and a frame without a reading.
        told.append(f"CASE WHEN peak IS NULL THEN '' ELSE {figures} END")
    return told
