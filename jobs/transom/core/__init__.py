"""Modules for every layer: intervals, durations, path patterns, numbers, text for terminals."""
