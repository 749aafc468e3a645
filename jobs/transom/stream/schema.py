"""The JSON Schema of a stream's file, for editors: what is known field by field.

Rules between fields (levels, columns that exist, conditions) are beyond a schema; `load` has them.
"""

import json

from transom.stream.model import Stream


def schema_text() -> str:
    """Return the schema as JSON, the same text every time."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Stream.model_json_schema(by_alias=True, mode="validation"),
    }
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
