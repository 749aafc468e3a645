"""Data-driven frames."""
