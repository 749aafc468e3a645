"""Parsers of logs: from bytes to typed events and rejections, whole columns at a time.

Each line becomes an event, a rejection or a header line; no input raises. A line is refused for the first
reason in this order: its form, its time, its columns in declared order, its file's span.
`read_file.read_file` is the entry point; `registry.PARSERS` lists the formats. A specification only needs
`record_format`, which does not import Arrow.
"""
