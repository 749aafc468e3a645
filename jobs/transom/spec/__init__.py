"""A stream's file: its core fields, its loader, and its errors."""
