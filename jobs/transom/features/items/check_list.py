"""The checks that persistence and frequency both make."""

from transom.spec.checks import BuiltIn

CHECKS = {
    "items_short": BuiltIn(
        "sketch",
        "warning",
        "no item has more than 4,096 bytes; longer ones are passed over",
        advice="the beginnings of long ones are in the sample: a shorter column may be derived of them",
    ),
}
