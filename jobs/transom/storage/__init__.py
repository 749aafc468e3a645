"""Delta tables: read, write, digest."""
