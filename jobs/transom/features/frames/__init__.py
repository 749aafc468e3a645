"""The feature `frames`: periods of time that the data of each key delimits."""
