"""Draft a stream's file from a log."""
