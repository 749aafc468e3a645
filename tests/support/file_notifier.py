"""Notifiers of Airflow for tests."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier


class FileNotifier(BaseNotifier):
    """Appends a text to a file, as a line of JSON."""

    template_fields: Sequence[str] = ("text", "path")

    def __init__(self, text: str, path: str) -> None:
        super().__init__()
        self.text = text
        self.path = path

    def notify(self, context: Any) -> None:
        """Append the text."""
        with Path(self.path).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(self.text)}\n")


class RefusingNotifier(BaseNotifier):
    """Raises."""

    def __init__(self) -> None:
        super().__init__()

    def notify(self, context: Any) -> None:
        """Refuse."""
        raise ConnectionError("refused by \x1b[31mthe receiver")
