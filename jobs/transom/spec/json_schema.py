"""The JSON Schema of a stream's file, for editors: the rules of single fields.

Rules between fields (levels, columns that exist, conditions) are beyond a schema; `load` has them.
"""

import json
from datetime import timedelta
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from transom.core.durations import format_duration
from transom.spec.stream import Stream


class _Schema(GenerateJsonSchema):
    """Pydantic's schema, with defaults as a file writes them."""

    def encode_default(self, dft: Any) -> Any:
        """Return a default as JSON; pydantic's durations are no text that a file may hold."""
        if isinstance(dft, tuple):
            return [self.encode_default(item) for item in dft]
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def schema_text(model: type[Stream]) -> str:
    """Return the schema of a stream's file as JSON, the same text every time."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(by_alias=True, mode="validation", schema_generator=_Schema),
    }
    stages = ["ingest", *(feature.name for feature in model.features)]
    checked = ["ingest", *(feature.name for feature in model.features if feature.row_types is not None)]
    schema["$defs"]["WaiverSpec"]["properties"]["stage"]["enum"] = stages
    schema["$defs"]["CheckSpec"]["properties"]["stage"]["anyOf"][0]["enum"] = checked
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
