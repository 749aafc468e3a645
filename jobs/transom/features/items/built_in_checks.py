"""The checks that `persistence` and `frequency` share."""

from collections.abc import Mapping

from transom.spec.checks import BuiltIn


def item_checks(stage: str, short: str, rules: Mapping[str, str]) -> dict[str, BuiltIn]:
    """Return the checks of a stage.

    Args:
        stage: the stage.
        short: the name of the check that no item is too long, a warning.
        rules: rules by the names of their checks, with the severity error.
    """
    is_short = "no item has more than 4,096 bytes; longer ones are skipped"
    advice = "the beginnings of long ones are in the sample: a shorter column may be derived of them"
    errors = {name: BuiltIn(stage, "error", rule) for name, rule in rules.items()}
    return {short: BuiltIn(stage, "warning", is_short, advice=advice)} | errors
