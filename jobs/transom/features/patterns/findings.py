"""Episodes as findings: how each is told, by the stream's words. No Spark."""

from transom.core.durations import format_duration, microseconds, spoken
from transom.features.patterns.algorithm.episodes import Merging
from transom.features.patterns.spec import AnyOrder, Pattern, Step
from transom.findings import sync as mirroring
from transom.findings.entities import Lasting, Told
from transom.findings.sql_text import shown, text
from transom.ledger.ledger import Ledger
from transom.spec.stream import Stream

STAGE, TABLE, KIND = "widen", "episodes", "episode"
TIMES = ("start", "end", "detected_at")


def publish(ledger: Ledger, stream: Stream) -> bool:
    """Brings the findings up to date with the episodes, as they stand.

    Returns:
        Whether something was written.
    """
    told = {name: _told(name, pattern) for name, pattern in stream.blocks(Pattern).items()}
    return mirroring.publish(ledger, Lasting(STAGE, TABLE, KIND, stream.name, told))


def _told(name: str, pattern: Pattern) -> Told:
    title = pattern.title
    if title is None:
        of = f" of {', '.join(f'{{{column}}}' for column in pattern.key)}" if pattern.key else ""
        title = f"{name}{of}, {{start}} to {{end}}"
    return Told(
        name=name,
        key=pattern.key,
        id="episode_id",
        new="new_matches",
        columns=("matches", "detected_at", "level"),
        times=TIMES,
        severity=pattern.severity,
        title=title,
        evidence=_evidence(name, pattern),
        reach=Merging(*map(microseconds, (pattern.merge, pattern.within, pattern.top))).reach,
    )


def _evidence(name: str, pattern: Pattern) -> list[str]:
    longest = f"CASE level {_windows(pattern)} ELSE 'windows' END"
    # Of several matches nobody has noted where the first one ends.
    since = 'CASE matches WHEN 1 THEN "end" ELSE start END'
    which = "CASE matches WHEN 1 THEN ' after its last record' ELSE ' after the first record' END"
    seconds = f"((arrow_cast(detected_at, 'Int64') - arrow_cast({since}, 'Int64')) / 1000000)"
    after = f"concat({seconds} / 3600, ' h ', {seconds} % 3600 / 60, ' min ', {seconds} % 60, ' s')"
    so_far = "CASE WHEN __ongoing THEN ' so far' ELSE '' END"
    matches = f"concat(CASE matches WHEN 1 THEN '1 match' ELSE concat(matches, ' matches') END, {so_far}"
    where = f"records are in the table matches, of block {name}{' and this key' if pattern.key else ''}"
    return [
        text(f"the pattern: {_in_words(pattern)}"),
        f"{matches}, CASE matches WHEN 1 THEN '; its ' ELSE '; their ' END, {text(where)})",
        f"concat('first detected at ', {shown('detected_at', TIMES)}, ' in ', {longest}, ', ', {after}, "
        f"{which})",
    ]


def _windows(pattern: Pattern) -> str:
    """What the windows of each level are, as cases."""
    lengths = (2 * pattern.batch * (1 << level) for level in range(pattern.levels))
    return " ".join(
        f"WHEN {level} THEN {text(f'windows of {spoken(length)} (level {level})')}"
        for level, length in enumerate(lengths)
    )


def _in_words(pattern: Pattern) -> str:
    whole = f"within {format_duration(pattern.within)}"
    if pattern.detector:
        return f"what {pattern.detector} finds, {whole}"
    elements = (
        f"{' and '.join(map(_step, part.any_order))} in any order"
        if isinstance(part, AnyOrder)
        else _step(part)
        for part in pattern.steps
    )
    return f"{', then '.join(elements)}, {whole}"


def _step(step: Step) -> str:
    return step.id if step.times == 1 else f"{step.times} times {step.id}"
