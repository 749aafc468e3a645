"""Write the JSON Schema of a stream file: `python -m transom.stream_schema schemas/stream.schema.json`.

It contains the rules of single fields, for editors. A schema cannot express rules between fields.
"""

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from transom.core.durations import format_duration
from transom.stream import Stream, StreamFile


class _Schema(GenerateJsonSchema):
    """Pydantic's schema, with defaults as a file writes them."""

    def encode_default(self, dft: Any) -> Any:
        """Return a default as JSON. Durations have the form of a stream file, not pydantic's."""
        if isinstance(dft, tuple):
            return [self.encode_default(item) for item in dft]
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def schema_text(model: type[Stream]) -> str:
    """Return the JSON Schema of a stream file; equal models give equal texts."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(by_alias=True, mode="validation", schema_generator=_Schema),
    }
    waivers, checks = (schema["$defs"][name]["properties"]["stage"] for name in ("WaiverSpec", "CheckSpec"))
    waivers["enum"] = ["ingest", *(feature.name for feature in model.features)]
    suppressed = schema["$defs"]["SuppressSpec"]["properties"]["stage"]
    suppressed["enum"] = [feature.name for feature in model.features if feature.findings is not None]
    checked = (feature.name for feature in model.features if feature.row_types is not None)
    checks["anyOf"][0]["enum"] = ["ingest", *checked]
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m transom.stream_schema FILE")
    Path(sys.argv[1]).write_text(schema_text(StreamFile), encoding="utf-8")
