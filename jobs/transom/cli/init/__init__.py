"""Draft a stream file from a log."""
