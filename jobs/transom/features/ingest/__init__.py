"""Files of the landing folder become events."""
