"""The ledger: states of partitions, claims, staleness."""
