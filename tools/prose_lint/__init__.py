"""Lint the prose of the repository: pages, docstrings, comments, messages and descriptions in YAML."""
