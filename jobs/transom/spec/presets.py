"""Presets: the format, columns, time, unique and checks of a known kind of log, as defaults of a stream."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from transom.formats.record_format import FormatName
from transom.spec.base import Model, Name, NonEmptyStr
from transom.spec.checks import CheckSpec
from transom.spec.deduplicate import Unique
from transom.spec.errors import Issue, IssuesError, SpecificationError, did_you_mean, problems_of
from transom.spec.event_time import Time
from transom.spec.feature import Feature
from transom.spec.source import Column
from transom.spec.yaml_file import read_mapping


class Preset(Model):
    """What a preset's file may say; see the same fields of `Stream` and `Source`."""

    title: NonEmptyStr | None = None
    description: NonEmptyStr | None = None
    format: FormatName | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    columns: dict[Name, Column] = Field(default_factory=dict)
    time: Time | None = None
    unique: Unique | None = None
    checks: dict[Name, CheckSpec] = Field(default_factory=dict)


def folder() -> Path:
    """Return where the presets are: TRANSOM_PRESETS, else schemas/presets of this checkout."""
    named = os.environ.get("TRANSOM_PRESETS")
    return Path(named) if named else Path(__file__).parents[3] / "schemas" / "presets"


def names() -> list[str]:
    """Return the names of all presets, such as `apache/combined`."""
    root = folder()
    return sorted(path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.yaml"))


def read(name: str) -> dict[str, Any]:
    """Return what a preset's file says, checked, with each column a mapping.

    Raises:
        Problems: there is no such preset, or its file is wrong.
    """
    known = names()  # asked first, so that no name can leave the folder
    if name not in known:
        raise IssuesError([Issue("preset", f"no preset {name!r}{did_you_mean(name, known)}")])
    try:
        data = read_mapping(folder() / f"{name}.yaml")
        data["columns"] = _full_columns(data.get("columns", {}))
        Preset.model_validate(data)
    except SpecificationError as error:
        raise IssuesError([Issue("preset", str(error))]) from None
    except ValidationError as error:
        found = [problem for _, problem in problems_of(error, Preset)]
        raise IssuesError([Issue("preset", f"{name}: {problem}") for problem in found]) from None
    return data


def with_defaults(data: Mapping[str, Any], features: Iterable[Feature[Any]] = ()) -> dict[str, Any]:
    """Return a stream's data with the preset's values and the blocks' defaults filled in.

    A column, a check, the time or unique of the stream replaces the preset's of that name whole; a column
    that is null leaves the preset's out. Options are the preset's with the stream's over them, as long as
    the format is the preset's. Whatever is not of the expected kind is left for validation to refuse.

    Raises:
        Problems: the preset is unknown or wrong, or a column is null without a preset's to leave out.
    """
    merged = dict(data)
    columns = merged.get("columns", {})
    if isinstance(columns, Mapping):
        columns = _full_columns(columns)
    preset = read(merged["preset"]) if isinstance(merged.get("preset"), str) else {}
    if isinstance(merged.get("source"), Mapping):
        merged["source"] = _source(dict(merged["source"]), preset)
    for name in preset.keys() & {"time", "unique"}:
        merged.setdefault(name, preset[name])
    if isinstance(merged.get("checks", {}), Mapping):
        merged["checks"] = {**preset.get("checks", {}), **merged.get("checks", {})}
    if isinstance(columns, Mapping):
        inherited = preset.get("columns", {})
        stray = [name for name, column in columns.items() if column is None and name not in inherited]
        if stray:
            rule = "must be a path or a mapping; null leaves out a preset's column, and there is none"
            raise IssuesError([Issue(f"columns.{name}", rule) for name in stray])
        both = {**inherited, **columns}
        merged["columns"] = {name: column for name, column in both.items() if column is not None}
    for feature in features:
        blocks = merged.get(feature.name)
        if isinstance(blocks, Mapping):
            merged[feature.name] = {name: _block(feature, block, merged) for name, block in blocks.items()}
    return merged


def _source(source: dict[str, Any], preset: Mapping[str, Any]) -> dict[str, Any]:
    if "format" in preset and source.setdefault("format", preset["format"]) == preset["format"]:
        own = source.get("options", {})
        if isinstance(own, Mapping):
            source["options"] = {**preset.get("options", {}), **own}
    return source


def _block(feature: Feature[Any], block: Any, stream: Mapping[str, Any]) -> Any:
    if not isinstance(block, Mapping):
        return block
    defaults: dict[str, Any] = {}
    inherits = feature.inherits(block)
    # A default that is itself wrong is reported in its own place, not once more for each block.
    key, where = stream.get("key"), stream.get("where")
    if "key" in inherits and isinstance(key, list | tuple) and all(isinstance(name, str) for name in key):
        defaults["key"] = key
    if "where" in inherits and isinstance(where, str) and where:
        defaults["where"] = where
    return {**defaults, **block}


def _full_columns(columns: Any) -> Any:
    """Return columns of which each is a mapping with its `from`, where it can be made one."""
    if not isinstance(columns, Mapping):
        return columns
    full: dict[Any, Any] = {}
    for name, column in columns.items():
        if isinstance(column, str):
            full[name] = {"from": column}
        elif isinstance(column, Mapping):
            full[name] = dict(column) if "is" in column else {"from": name, **column}
        else:
            full[name] = column
    return full
