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
    """The content of a preset's file; the fields are those of `Stream` and `Source`."""

    title: NonEmptyStr | None = None
    description: NonEmptyStr | None = None
    format: FormatName | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    columns: dict[Name, Column] = Field(default_factory=dict)
    time: Time | None = None
    unique: Unique | None = None
    checks: dict[Name, CheckSpec] = Field(default_factory=dict)


def folder() -> Path:
    """Return the folder of the presets: TRANSOM_PRESETS, else `presets` next to this module."""
    return Path(os.environ.get("TRANSOM_PRESETS") or Path(__file__).with_name("presets"))


def names() -> list[str]:
    """Return the names of all presets, such as `apache/combined`."""
    root = folder()
    return sorted(path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.yaml"))


def read(name: str) -> dict[str, Any]:
    """Return the data of a preset's file; raise an IssuesError if it is invalid."""
    known = names()  # checked first, so that no name can leave the folder
    if name not in known:
        raise IssuesError([Issue("preset", f"no preset {name!r}{did_you_mean(name, known)}")])
    try:
        data = read_mapping(folder() / f"{name}.yaml")
        Preset.model_validate(data)
    except SpecificationError as error:
        raise IssuesError([Issue("preset", str(error))]) from None
    except ValidationError as error:
        problems = [problem for _, problem in problems_of(error, Preset)]
        raise IssuesError([Issue("preset", f"{name}: {problem}") for problem in problems]) from None
    return data


def with_defaults(data: Mapping[str, Any], features: Iterable[Feature[Any]] = ()) -> dict[str, Any]:
    """Return a stream's data with the preset's values and the blocks' defaults.

    A column, a check, the time or unique of the stream replaces that of the preset as a whole. A column that
    is null removes the preset's. If the format is the same, the options of both are merged, and the stream's
    take precedence. Data of an unexpected type stays, for validation to refuse it.

    Raises:
        IssuesError: the preset is unknown or invalid, or a column is null that the preset does not have.
    """
    merged = dict(data)
    columns = merged.get("columns", {})
    preset = read(merged["preset"]) if isinstance(merged.get("preset"), str) else {}
    source = merged.get("source")
    if isinstance(source, Mapping) and "format" in preset:
        source = merged["source"] = {"format": preset["format"], **source}
        if source["format"] == preset["format"] and isinstance(source.get("options", {}), Mapping):
            source["options"] = {**preset.get("options", {}), **source.get("options", {})}
    for name in preset.keys() & {"time", "unique"}:
        merged.setdefault(name, preset[name])
    if isinstance(merged.get("checks", {}), Mapping):
        merged["checks"] = {**preset.get("checks", {}), **merged.get("checks", {})}
    if isinstance(columns, Mapping):
        inherited = preset.get("columns", {})
        rule = "must be a path or a mapping; null removes a preset's column, and there is none"
        if stray := [name for name, column in columns.items() if column is None and name not in inherited]:
            raise IssuesError([Issue(f"columns.{name}", rule) for name in stray])
        both = {**inherited, **columns}
        merged["columns"] = {name: column for name, column in both.items() if column is not None}
    for feature in features:
        blocks = merged.get(feature.name)
        if isinstance(blocks, Mapping):
            merged[feature.name] = {name: _block(feature, block, merged) for name, block in blocks.items()}
    return merged


def _block(feature: Feature[Any], block: Any, stream: Mapping[str, Any]) -> Any:
    if not isinstance(block, Mapping):
        return block
    # An invalid default is reported in its own place, not again for each block.
    key, where = stream.get("key"), stream.get("where")
    valid = {
        "key": isinstance(key, list | tuple) and all(isinstance(name, str) for name in key),
        "where": isinstance(where, str) and where != "",
    }
    inherits = feature.inherits(block)
    return {**{name: stream[name] for name in valid if valid[name] and name in inherits}, **block}
