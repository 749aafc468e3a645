"""Write the JSON Schema of a stream's file: `python -m transom.stream_schema schemas/stream.schema.json`."""

import sys
from pathlib import Path

from transom.spec.json_schema import schema_text
from transom.stream import StreamFile

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m transom.stream_schema FILE")
    Path(sys.argv[1]).write_text(schema_text(StreamFile), encoding="utf-8")
