"""Parse lines of JSON."""
