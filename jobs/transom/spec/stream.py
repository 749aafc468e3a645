"""The stream file as one frozen, validated model."""

from collections.abc import Iterable, Iterator, Mapping
from types import GenericAlias
from typing import Any

from pydantic import Field, create_model, model_validator

from transom.spec import fingerprints as shapes
from transom.spec import validate as rules
from transom.spec.base import Name
from transom.spec.errors import Issue
from transom.spec.feature import Feature
from transom.spec.presets import with_defaults
from transom.spec.stream_fields import StreamFields


class Stream(StreamFields):
    """A validated stream file. `stream_type` adds the blocks of features as fields."""

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, data: Any) -> Any:
        return with_defaults(data, cls.features) if isinstance(data, Mapping) else data

    def _rules(self) -> Iterator[Issue]:
        yield from rules.problems(self)

    def ingest_shape(self) -> str:
        """Return the fingerprint of the tables of ingest."""
        return shapes.ingest(self)


def stream_type(name: str, module: str, features: Iterable[Feature[Stream]]) -> type[Stream]:
    """Return the type of a stream file with the blocks of some features.

    Args:
        name: the name of the type.
        module: the module that has it under this name, so that its values can be pickled.
        features: the features, in the order in which their stages run.
    """
    features = tuple(features)
    fields: dict[str, Any] = {}
    for feature in features:
        blocks: Any = Field(default_factory=dict, description=feature.meaning)
        fields[feature.name] = (GenericAlias(dict, (Name, feature.block)), blocks)
    model = create_model(name, __base__=Stream, __module__=module, __doc__="One kind of log.", **fields)
    model.features = features
    # In error messages and the JSON Schema, blocks come before the checks.
    declared = model.__pydantic_fields__
    own = [name for name in declared if name not in fields]
    at = own.index("checks")
    model.__pydantic_fields__ = {name: declared[name] for name in [*own[:at], *fields, *own[at:]]}
    return model
