"""The stream files that come with the project.

A user's own files may be in the same folder. Tests use these names, and so pass with any other file there.
"""

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "schemas" / "streams"
NAMES = ("conn", "web")
FILES = tuple(FOLDER / f"{name}.yaml" for name in NAMES)
