"""The checks of stages of items."""

from collections.abc import Mapping

from transom.spec.checks import BuiltIn


def item_checks(stage: str, short: str, rules: Mapping[str, str]) -> dict[str, BuiltIn]:
    """Return the checks of a stage: `short`, that no item is too long, and rules with the severity error."""
    is_short = "no item has more than 4,096 bytes; longer ones are passed over"
    advice = "the beginnings of long ones are in the sample: a shorter column may be derived of them"
    errors = {name: BuiltIn(stage, "error", rule) for name, rule in rules.items()}
    return {short: BuiltIn(stage, "warning", is_short, advice=advice)} | errors
