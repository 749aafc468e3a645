"""A stream's file: its core, how it is read, and what is wrong with it."""
