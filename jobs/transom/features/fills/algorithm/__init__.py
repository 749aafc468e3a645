"""The algorithm: pure, without Spark; a reference beside its paper, and the fast form."""
