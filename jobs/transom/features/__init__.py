"""One folder a feature, from its block in a stream's file to its findings."""
