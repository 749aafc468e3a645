"""Times as logs write them, to UTC microseconds, whole columns at a time.

Local times need a zone. One that a clock change skips does not exist and is refused; one that it
repeats is taken as the earlier of the two.
"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

FIRST = 0
LAST = (datetime(2262, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).days * 86_400_000_000
EPOCHS = {"epoch": 1e6, "epoch_ms": 1e3, "epoch_us": 1.0}
NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
APACHE = "%d/%b/%Y:%H:%M:%S %z"

Mask = npt.NDArray[np.bool_]


def instants(text: pa.Array, form: str, zone: str | None) -> tuple[pa.Array, Mask, dict[str, Mask]]:
    """Times from a column of texts, or of numbers where the form is an epoch.

    Returns:
        The instants (timestamp us UTC, null where there is none), which of the values are no time, and
        among those the ones with a reason of their own: `no_zone`, `no_such_local_time`.
    """
    present = np.asarray(pc.is_valid(text).to_numpy(zero_copy_only=False), dtype=bool)
    if form in EPOCHS:
        micros, bad = _epoch(text, EPOCHS[form])
        special: dict[str, Mask] = {}
    else:
        micros, bad, special = _written(text.cast(pa.string()), form, zone)
    with np.errstate(invalid="ignore"):
        bad = present & (bad | (micros < FIRST) | (micros >= LAST))
    found = pa.array(np.where(bad | ~present, 0, micros), mask=bad | ~present)
    return found.cast(pa.timestamp("us", "UTC")), bad, special


def _epoch(text: pa.Array, scale: float) -> tuple[npt.NDArray[np.int64], Mask]:
    if pa.types.is_string(text.type):
        fits = pc.fill_null(pc.match_substring_regex(text, NUMBER), False)
        text = pc.if_else(fits, text, pa.scalar(None, text.type)).cast(pa.float64())
    seconds = text.cast(pa.float64()).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore", over="ignore"):
        micros = np.rint(seconds * scale)
        bad = ~(np.abs(micros) < 2.0**62)
    return np.where(bad, 0, micros).astype(np.int64), bad


def _written(
    text: pa.Array, form: str, zone: str | None
) -> tuple[npt.NDArray[np.int64], Mask, dict[str, Mask]]:
    # Logs repeat their times: each distinct text is read once.
    distinct = text.dictionary_encode()
    values = distinct.dictionary.to_pylist()
    read = [_one(value, form, zone) for value in values] or [(0, "bad_time")]
    micros = np.array([micro for micro, _ in read], dtype=np.int64)
    reasons = np.array([reason or "" for _, reason in read], dtype=np.str_)
    index = distinct.indices.fill_null(0).to_numpy(zero_copy_only=False)
    here = reasons[index]
    missing = ~np.asarray(pc.is_valid(text).to_numpy(zero_copy_only=False), dtype=bool)
    here = np.where(missing, "", here)
    special = {reason: here == reason for reason in ("no_zone", "no_such_local_time")}
    return micros[index], here != "", special


def _one(text: str, form: str, zone: str | None) -> tuple[int, str | None]:
    try:
        # Whether it has a zone is looked at below.
        moment = datetime.fromisoformat(text) if form == "iso" else datetime.strptime(text, form)  # noqa: DTZ007
    except ValueError:
        return 0, "bad_time"
    if moment.tzinfo is None:
        if zone is None:
            return 0, "no_zone"
        moment = moment.replace(tzinfo=ZoneInfo(zone), fold=0)
        if moment.astimezone(UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None) != moment.replace(
            tzinfo=None
        ):
            return 0, "no_such_local_time"
    try:
        since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    except OverflowError:
        return 0, "bad_time"
    return (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds, None
