"""Messages about findings: each finding once, and again when it ends, changes or is withdrawn."""
