"""The feature `persistence`: items that appear in most slots of a window, by a sampling sketch."""
