"""What persistence and frequency have in common: items."""
