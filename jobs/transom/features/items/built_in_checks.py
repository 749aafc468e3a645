"""The check that persistence and frequency share."""

from transom.spec.checks import BuiltIn


def items_short(stage: str) -> BuiltIn:
    """Return the check of a stage that no item is too long."""
    return BuiltIn(
        stage,
        "warning",
        "no item has more than 4,096 bytes; longer ones are passed over",
        advice="the beginnings of long ones are in the sample: a shorter column may be derived of them",
    )
