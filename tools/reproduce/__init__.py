"""Reproduce figures of the papers, with one Makefile target per paper."""
