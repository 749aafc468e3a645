"""The specification of a stream: everything that a stream's file says, validated, and nothing else.

`load` reads one; each model's docstring tells its fields. No Spark, no Airflow, no clock, no network.
"""

from transom.paths import Match, PathPattern
from transom.stream.checks import BUILT_IN, Accept, Check, Gate, RowBounds, Severity, Stage
from transom.stream.errors import Problem, SpecificationError
from transom.stream.frames import Frame
from transom.stream.model import Stream
from transom.stream.patterns import AnyOrder, Never, Pattern, Step
from transom.stream.reading import load, parse
from transom.stream.source import Column, Holds, Source
from transom.stream.time import Time
from transom.stream.unique import Unique
from transom.stream.windows import Aggregation, Level, Measure

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
