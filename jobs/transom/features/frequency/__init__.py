"""The feature `frequency`: the most frequent items of sliding windows, by Count-Min sketches."""
