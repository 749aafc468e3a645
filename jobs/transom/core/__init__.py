"""What every part may use: intervals, durations, path patterns, numbers, text for terminals."""
