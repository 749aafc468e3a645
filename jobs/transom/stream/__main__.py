"""Write the JSON Schema of a stream's file: `python -m transom.stream schemas/stream.schema.json`."""

import sys
from pathlib import Path

from transom.stream.schema import schema_text

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m transom.stream FILE")
    Path(sys.argv[1]).write_text(schema_text(), encoding="utf-8")
