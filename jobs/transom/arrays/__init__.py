"""Kernels over numpy and Arrow that several features share."""
