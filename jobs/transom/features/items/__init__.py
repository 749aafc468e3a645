"""Items: what persistence and frequency share."""
