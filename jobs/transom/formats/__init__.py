"""Parsers of logs: bytes in, typed events and rejections out, whole columns at a time.

Every line of every input becomes an event, a rejection or a header line; no input raises. A line is
refused for the first of: its own form, its time, its columns in declared order, its file's span.
"""

from transom.formats.layout import EventTime, Field, Layout, Span
from transom.formats.reading import Chunk, Summary, read_file

__all__ = ["Chunk", "EventTime", "Field", "Layout", "Span", "Summary", "read_file"]
