"""Windowed Count-Min sketches."""
