"""Rows as columns of equal length, and int64 values with a special meaning."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from transom.core.exact_sums import Bools

MISSING = np.iinfo(np.int64).min
"""Means no time or no value."""
FAR_FUTURE = np.iinfo(np.int64).max
"""A time after all others."""


@dataclass(frozen=True)
class ColumnBatch:
    """Rows stored as columns: the fields of a subclass are arrays of equal length."""

    def take(self, rows: Any) -> Self:
        """Return some of the rows."""
        return replace(self, **{name: column[rows] for name, column in self.columns().items()})

    @classmethod
    def none(cls) -> Self:
        """Return a batch without rows."""
        kinds = (bool if field.type is Bools else np.int64 for field in fields(cls))
        return cls(*(np.empty(0, dtype=kind) for kind in kinds))

    def and_then(self, others: Self) -> Self:
        """Return these rows followed by others."""
        both = {name: np.append(column, getattr(others, name)) for name, column in self.columns().items()}
        return replace(self, **both)

    def columns(self) -> dict[str, Any]:
        """Return the columns by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
