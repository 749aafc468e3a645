"""How many examples Hypothesis draws: the profile says, and a test whose case is rare asks for a multiple."""

from hypothesis import settings


def rare_case(times: int) -> settings:
    """Return settings with `times` as many examples as the profile, for a case that few draws reach."""
    return settings(max_examples=times * settings.default.max_examples)
