"""The command line: what a person asks of streams, samples and the lake. Nothing is computed here that a job
does not compute."""
