"""The stream file: its core fields, its loader, and its errors."""
