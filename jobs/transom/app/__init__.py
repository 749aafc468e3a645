"""Runs over all features: jobs, pipeline, verification."""

from transom.core.collector import relax

# Before the imports of a job, which take a third less time so.
relax()
