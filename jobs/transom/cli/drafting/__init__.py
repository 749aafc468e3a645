"""What `transom init` does: a stream file, drafted from the first lines of a log."""
