"""Frames filled by between-joins against other tables."""
