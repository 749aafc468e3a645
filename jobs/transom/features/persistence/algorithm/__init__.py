"""The algorithm without Spark: a reference that follows the paper, and a vectorised form."""
