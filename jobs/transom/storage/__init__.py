"""Delta tables: reading, staging, writing, digests."""
