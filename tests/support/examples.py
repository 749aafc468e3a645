"""The number of examples that Hypothesis draws: the profile's, or a multiple of it for rare cases."""

from hypothesis import settings


def rare_case(times: int) -> settings:
    """Return settings with `times` as many examples as the profile, for a case that few draws reach."""
    return settings(max_examples=times * settings.default.max_examples)
