"""The kernel: plans, computes, checks and publishes hours."""
