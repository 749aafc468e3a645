"""Runs over all features: jobs, pipeline, verification."""
