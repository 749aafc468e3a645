"""Drafts a stream's file from a log."""
