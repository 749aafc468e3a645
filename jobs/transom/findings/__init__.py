"""Findings: what a user should know, kept up to date with the tables."""
