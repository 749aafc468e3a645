"""Checks of a stage's output: the built-in checks with their defaults, and those of a stream."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictInt

from transom.spec.base import Hour, Model, NonEmptyStr, Number, finite
from transom.spec.errors import Issue, did_you_mean

Severity = Literal["error", "incomplete", "warning"]

MIN_LINES_FOR_SHARE = 20
"""A file with fewer lines is not quarantined for its share of rejected lines alone."""


@dataclass(frozen=True)
class BuiltIn:
    """A built-in check.

    Attributes:
        stage: the stage whose output is checked.
        severity: the effect of a failure, unless the stream overrides it.
        meaning: the rule, as text.
        at_most: the largest value that passes; None for a check without a tolerance.
        advice: a hint for messages, if the check's name and values are not enough.
        tolerance: the field of `CheckSpec` that overrides `at_most`.
        remedy: what to fix after a failure, if it is not the data.
    """

    stage: str
    severity: Severity
    meaning: str
    at_most: float | None = None
    advice: str | None = None
    tolerance: Literal["at_most", "hours"] = "at_most"
    remedy: str | None = None


OF_INGEST: Mapping[str, BuiltIn] = {
    "lines_accounted": BuiltIn(
        "ingest", "error", "lines of a file = events + rejected + duplicates + header lines"),
    "rejected_share": BuiltIn(
        "ingest", "error", "share of a file's lines that were rejected; of a file with fewer than 20 lines, "
        "some of which are events, it is a warning unless the stream sets the check itself", 0.05),
    "no_nul_bytes": BuiltIn(
        "ingest", "warning", "no line of a file begins with NUL bytes; they are skipped",
        advice="such bytes are left where a log is truncated while it is written, or where a machine loses "
        "power: lines may be missing there"),
    "captures_filled": BuiltIn(
        "ingest", "error", "every {capture} of source.path has a text in a file's name",
        advice="rename the file, or take the capture out of the path"),
    "times_inside_hour": BuiltIn("ingest", "error", "every event lies inside what its file may hold"),
    "hours_bounded": BuiltIn(
        "ingest", "error", "the events of a file fall in no more hours than a year has", 366 * 24,
        "are its times what the stream takes them for? A longer log comes in several files, or with "
        "`checks: {hours_bounded: {hours: ...}}`", "hours"),
    "keys_not_null": BuiltIn(
        "ingest", "error", "no event that a block takes, by its `where`, lacks a column of the block's key"),
    "fields_known": BuiltIn(
        "ingest", "warning", "a file brings no field that the specification does not name, unless "
        "`extra_fields: keep` takes it",
        advice="the fields are in the sample: a column takes one, or `extra_fields: keep` all of them"),
    "fields_present": BuiltIn(
        "ingest", "warning", "every declared column is in some record of a file that has records",
        advice="the columns are in the sample, and null in the whole file"),
    "used_fields_present": BuiltIn(
        "ingest", "error",
        "the same of the columns that unique, a check, or a block that takes events of the file uses",
        advice="the columns are in the sample: `from: new | old` reads a field by several names, and where "
        "whole files rightly lack one, `checks: {used_fields_present: {severity: warning}}`"),
    "files_expected": BuiltIn(
        "ingest", "incomplete", "as many files came as the source expects; no file is expected before "
        "`start`, nor from `until` on"),
    "periods_covered": BuiltIn(
        "ingest", "incomplete", "files cover all of the hour, where the source sets how long a period each "
        "file `covers`", advice="the periods without a file are in the sample"),
    "files_unchanged": BuiltIn(
        "ingest", "warning", "no file differs from its published content, except by having grown"),
    "files_distinct": BuiltIn(
        "ingest", "warning",
        "no two files hold the same bytes under names that differ by more than packing and rotation",
        advice="both names are in the sample: where they come from two sources, a capture in `source.path`, "
        "such as {host}, distinguishes these, and where one is a copy, `source: {equal_files: one}` counts "
        "it once"),
    "times_unambiguous": BuiltIn(
        "ingest", "warning",
        "of local times in the hour that comes twice, the order of a file's lines determines which is meant",
        advice="these events count in the first of the two hours; a log in UTC or with offsets avoids this"),
    "file_readable": BuiltIn("ingest", "incomplete", "a file is neither truncated nor corrupt"),
}  # fmt: skip
"""The built-in checks of ingest. Those of features are in `features/<noun>/built_in_checks.py`."""

Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(finite)]
Rows = Annotated[StrictInt, Field(ge=0)]


class RowBounds(Model):
    """Inclusive bounds on the number of rows of an hour (for ingest, of a file). At least one is required."""

    at_least: Rows | None = None
    """The minimum number of rows."""
    at_most: Rows | None = None
    """The maximum number of rows."""


class CheckSpec(Model):
    """One of the stream's own checks, or a change of the built-in check with this name."""

    stage: str | None = None
    """The stage whose output is checked. Required for an own check; not allowed for a built-in one."""
    block: str | None = None
    """The checked block. Required if the stage has several; only for own checks of `aggregates`."""
    every: NonEmptyStr | None = None
    """A condition. At least `share` of the rows of an hour (for ingest, of a file) must meet it. A row for
    which it is null does not meet it."""
    share: Share | None = None
    """The share of the rows that must meet `every`, from 0 to 1. Default: 1, all rows."""
    rows: RowBounds | None = None
    """Bounds on the number of rows of an hour (for ingest, of a file), in place of `every`."""
    severity: Severity | None = None
    """The effect of a failure. error quarantines the hour (for ingest, the file). incomplete publishes it as
    incomplete. warning is only recorded. Default of an own check: error."""
    at_most: Share | None = None
    """Another tolerance, from 0 to 1, for a built-in check that has one."""
    hours: Annotated[StrictInt, Field(ge=1)] | None = None
    """For `hours_bounded`: the maximum number of distinct hours of the events of a file."""
    off: StrictBool | None = None
    """true disables a built-in check."""


class WaiverSpec(Model):
    """Lets one failed check pass, as long as it observes exactly this value."""

    hour: Hour
    """The quarantined hour."""
    stage: str
    """The stage of the failed check."""
    check: str
    """The name of the failed check."""
    observed: Number
    """The observed value of the failed check."""
    who: NonEmptyStr
    """The person who is responsible for the waiver."""
    why: NonEmptyStr
    """The reason for the waiver."""


@dataclass(frozen=True)
class ResolvedCheck:
    """One check of a stage, resolved from the built-in checks and the stream file.

    Attributes:
        stage: the stage whose output is checked.
        block: the checked block; None is every block of the stage.
        built_in: whether it is built in. If so, `every` and `rows` are None.
        at_most: the largest value that passes, for built-in checks with a tolerance.
        every: the condition on the rows.
        share: the share of the rows that must meet it, from 0 to 1.
        rows: bounds on the number of rows.
    """

    name: str
    stage: str
    severity: Severity
    block: str | None = None
    built_in: bool = False
    at_most: float | None = None
    every: str | None = None
    share: float = 1.0
    rows: RowBounds | None = None


def resolve(declared: Mapping[str, CheckSpec], built_in: Mapping[str, BuiltIn]) -> tuple[ResolvedCheck, ...]:
    """Return every check of a stream: the built-in ones that are not off, then its own."""
    resolved = []
    for name, default in built_in.items():
        change = declared.get(name, CheckSpec())
        if not change.off:
            tolerance = change.hours if default.tolerance == "hours" else change.at_most
            at_most = default.at_most if tolerance is None else tolerance
            severity = change.severity or default.severity
            resolved.append(ResolvedCheck(name, default.stage, severity, built_in=True, at_most=at_most))
    for name, check in declared.items():
        if name not in built_in:
            assert check.stage is not None  # refused by `problems` before
            share = 1.0 if check.share is None else check.share
            own = ResolvedCheck(name, check.stage, check.severity or "error", check.block, every=check.every)
            resolved.append(replace(own, share=share, rows=check.rows))
    return tuple(resolved)


def allowed(default: BuiltIn) -> set[str]:
    """Return the fields that a stream may set for a built-in check."""
    return {"severity", "off"} | ({default.tolerance} if default.at_most is not None else set())


def only_allowed(name: str, default: BuiltIn) -> str:
    """Return the rule that other fields of a built-in check break."""
    return f"{name} is built in, only {', '.join(sorted(allowed(default)))} may be set"


def problems(
    name: str,
    check: CheckSpec,
    built_in: Mapping[str, BuiltIn],
    stages: Sequence[str],
    feature: str,
    blocks: Sequence[str],
) -> Iterator[Issue]:
    """Yield the problems of one check, except those of its condition; paths are relative to the check.

    Args:
        stages: the stages that may have own checks.
        feature: the feature of the check's stage.
        blocks: the names of its blocks.
    """
    given = check.model_fields_set
    default = built_in.get(name)
    if default is not None:
        for field in sorted(given - allowed(default)):
            yield Issue(field, only_allowed(name, default))
        return
    for field in ("at_most", "hours", "off"):
        if field in given:
            yield Issue(field, f"only built-in checks have it{did_you_mean(name, built_in)}")
    if check.stage is None:
        hint = did_you_mean(name, built_in)
        meant = f" (or is it a built-in check{hint})" if "nearest" in hint else ""
        yield Issue("stage", f"is required, one of {', '.join(stages)}{meant}")
    elif check.stage not in stages:
        yield Issue("stage", f"must be one of {', '.join(map(repr, stages))}; got {check.stage!r}")
    if (check.every is None) == (check.rows is None):
        both = "neither" if check.every is None else "both"
        yield Issue("", f"must have either every or rows; it has {both}")
    if check.share is not None and check.every is None:
        yield Issue("share", "requires every, which is missing")
    if check.rows is not None:
        low, high = check.rows.at_least, check.rows.at_most
        if low is None and high is None:
            yield Issue("rows", "must have at_least, at_most or both")
        elif low is not None and high is not None and low > high:
            got = f"at_least {low}, at_most {high}"
            yield Issue("rows", f"at_least must not be above at_most; got {got}")
    if check.block is None and len(blocks) > 1:
        yield Issue("block", f"is required where there are several; known: {', '.join(blocks)}")
    elif check.block is not None and check.stage == "ingest":
        yield Issue("block", f"ingest has no blocks; got {check.block!r}")
    elif check.block is not None and check.block not in blocks:
        message = f"no block {check.block!r}{did_you_mean(check.block, blocks)}"
        yield Issue("block", message, ((feature, check.block),))
