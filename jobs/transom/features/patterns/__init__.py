"""Widened windows: episodes of several steps."""
