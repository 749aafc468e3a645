"""Findings: what a person should know, kept up to date with the tables."""
