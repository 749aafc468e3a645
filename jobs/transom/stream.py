"""The specification of a stream: everything that a stream's file says, validated, and nothing else.

`load` reads one; each model's docstring tells its fields. No Spark, no Airflow, no clock, no network.
"""

from transom.core.path_pattern import Match, PathPattern
from transom.features.aggregates.spec import Aggregation, Level, Measure
from transom.features.frames.spec import Frame
from transom.features.patterns.spec import AnyOrder, Never, Pattern, Step
from transom.spec.checks import BUILT_IN, Accept, Check, Gate, RowBounds, Severity, Stage
from transom.spec.deduplicate import Unique
from transom.spec.errors import Problem, SpecificationError
from transom.spec.event_time import Time
from transom.spec.loader import load, parse
from transom.spec.source import Column, Holds, Source
from transom.spec.stream import Stream

__all__ = [
    "BUILT_IN",
    "Accept",
    "Aggregation",
    "AnyOrder",
    "Check",
    "Column",
    "Frame",
    "Gate",
    "Holds",
    "Level",
    "Match",
    "Measure",
    "Never",
    "PathPattern",
    "Pattern",
    "Problem",
    "RowBounds",
    "Severity",
    "Source",
    "SpecificationError",
    "Stage",
    "Step",
    "Stream",
    "Time",
    "Unique",
    "load",
    "parse",
]
