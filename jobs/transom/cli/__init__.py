"""The command line: questions about streams, samples and the lake."""
