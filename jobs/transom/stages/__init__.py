"""The stages: DataFrames to DataFrames, a module each, with what each declares of itself."""
