"""Items: the shared parts of `persistence` and `frequency`."""
