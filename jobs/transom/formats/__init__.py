"""Parsers of logs: from bytes to typed events and rejections, whole columns at a time.

Every line of every input becomes an event, a rejection or a header line; no input raises. A line is refused
for the first reason in this order: its form, its time, its columns in declared order, its file's span.
`read_file.read_file` is the entry point; `registry.PARSERS` is the list of formats. A specification needs
`record_format` alone, which loads no Arrow.
"""
