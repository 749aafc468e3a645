"""Benchmarks: transom beside Spark's own operators and DuckDB, on logs that are drawn."""
