"""The specification of a stream: everything that a stream's file says, validated, and nothing else.

`load` reads one; each model's docstring describes its fields. No Spark, no Airflow, no clock, no network.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transom.features.registry import FEATURES
from transom.spec import loader
from transom.spec.errors import Issue, SpecificationError
from transom.spec.stream import Stream, stream_type

__all__ = ["Issue", "SpecificationError", "Stream", "StreamFile", "load", "parse"]

StreamFile = stream_type("StreamFile", __name__, FEATURES)
"""The type of a stream's file, with the blocks of every feature."""


def load(path: str | Path) -> Stream:
    """Return the stream that a YAML file declares.

    Raises:
        SpecificationError: the file cannot be read or breaks a rule; its text has every problem, each
            with the field's path, the rule and the value.
    """
    return loader.load(path, StreamFile)


def parse(data: Mapping[str, Any], name: str = "stream") -> Stream:
    """Return the stream that a mapping declares; `name` is for errors.

    Raises:
        SpecificationError: as `load`.
    """
    return loader.parse(data, StreamFile, name)
