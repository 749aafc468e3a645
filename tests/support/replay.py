"""Seeds of randomised tests, and the command that replays a failure."""

import os

import hypothesis
import pytest

FIXED_SEED = 32
"""Seed of draws that are equal in every run, unless TRANSOM_SEED gives another one. Its five lakes of drawn
histories contain every kind of event.
"""
LAKES = 5
"""Number of lakes of drawn histories, of each kind."""


def replay_command(item: pytest.Function) -> str:
    """Return the command that runs a randomised test again with the same seed and profile."""
    fixed = "run_seed" in item.fixturenames and not hypothesis.is_hypothesis_test(item.obj)
    options = {"TRANSOM_LAKES": os.environ.get("TRANSOM_LAKES") or LAKES} if fixed else {}
    options |= {
        "TRANSOM_SEED": os.environ.get("TRANSOM_SEED")
        or (FIXED_SEED if fixed else item.config.getoption("hypothesis_seed")),
        "PROFILE": item.config.getoption("hypothesis_profile") or "quick",
        "TEST": f"'{item.nodeid.partition('@')[0]}'",
    }
    return " ".join(["make histories", *(f"{name}={value}" for name, value in options.items())])
