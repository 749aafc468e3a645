"""Lines of JSON."""
