"""Benchmarks: compare transom with Spark's own operators and DuckDB on generated logs."""
