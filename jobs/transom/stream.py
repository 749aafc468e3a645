"""The specification of a stream: the content of a stream file, validated.

`load` reads a file; the models describe its fields. No Spark, no Airflow, no clock, no network.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transom.features.registry import FEATURES
from transom.spec import loader
from transom.spec.errors import Issue, SpecificationError
from transom.spec.stream import Stream, stream_type
from transom.spec.yaml_file import read_mapping

__all__ = ["Issue", "SpecificationError", "Stream", "StreamFile", "load", "parse"]

StreamFile = stream_type("StreamFile", __name__, FEATURES)
"""The type of a stream file, with the blocks of every feature."""


def load(path: str | Path, model: type[Stream] = StreamFile) -> Stream:
    """Return the stream that a YAML file declares.

    Args:
        model: the type of the file, with the blocks that it may have.

    Raises:
        SpecificationError: the file cannot be read or breaks a rule; its text has every problem: field, rule
            and value.
    """
    return loader.parse(read_mapping(path), model, str(path))


def parse(data: Mapping[str, Any], name: str = "stream") -> Stream:
    """Return the stream that a mapping declares; `name` is for errors.

    Raises:
        SpecificationError: as `load`.
    """
    return loader.parse(data, StreamFile, name)
