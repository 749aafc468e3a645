"""The contacts of which it is asked how often each host was seen in the last 24 hours: those of
`bench.persistence_log`."""

import json
from pathlib import Path

WINDOW = 24
"""Hours."""
EPSILON, DELTA = 0.01, 0.01


def stream_of(folder: Path) -> Path:
    """The stream file."""
    spec = {
        "name": "drawn",
        "preset": "apache/combined",
        "source": {"path": "no/%Y-%m-%d/%H.log", "expect": 1},
        "frequency": {
            "hosts": {
                "item": ["client"], "tick": "5 minutes", "window": f"{WINDOW} hours",
                "epsilon": EPSILON, "delta": DELTA, "top": 20,
            }
        },
    }  # fmt: skip
    file = folder / "often.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(spec))
    return file
