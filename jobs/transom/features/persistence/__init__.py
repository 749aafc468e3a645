"""Persistent items by sliding sketches."""
