"""`transom setup`: install Java, Delta's jars and Spark's settings."""

from transom.cli.arguments import cli_errors
from transom.core.locations import runtime
from transom.installation.install import install
from transom.installation.java import SetupError


def setup() -> None:
    """Install what Spark needs besides Python packages: Delta's jars, and Java if there is no 17 or 21.

    Everything goes into `.transom` of a checkout, or without one into the user's data folder. Run it again
    after an upgrade; a second run takes no time.
    """
    with cli_errors(SetupError):
        install(runtime())
