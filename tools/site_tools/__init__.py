"""The documentation site: generated pages and drawings."""
