"""Multi-granular sliding aggregates."""
