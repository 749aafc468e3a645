"""The command line: drafts, trials, state and repair of streams."""
