"""`transom`: the command line, with one module per command."""

from typing import Annotated

import typer

from transom import __version__
from transom.cli.check import check
from transom.cli.explain import explain
from transom.cli.init_command import init
from transom.cli.report_command import report
from transom.cli.setup import setup
from transom.cli.status import status
from transom.cli.try_command import try_
from transom.cli.verify import verify
from transom.core.collector import relax
from transom.installation.install import load_environment

HELP = """Compute time-based results from event logs, hour by hour.

A stream is a log that a YAML file declares. It is named by that file or, if it is in schemas/streams (or
the folder in TRANSOM_STREAMS), by its name.

\b
  transom init access.log --output schemas/streams/site.yaml
                                          a first stream file, from the log's first lines
  transom try site access.log             what it finds in this log
  transom status site                     the state of the lake, after a run of the DAG or a job
  transom explain site 2015-05-17T10:00   why an hour is not fresh, and what fixes it
  transom report site --html site.html    a page with findings, hours and results
  transom verify site                     whether the tables match the ledger
"""

# Plain help and errors look the same in a terminal, a log and a mail.
app = typer.Typer(
    name="transom",
    help=HELP,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"transom {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit."),
    ] = False,
) -> None:
    """Accept the options of `transom` itself."""


# typer truncates the first sentence of a command's help in the list of commands.
app.command(short_help="draft a stream file from a log's first lines")(init)
app.command(short_help="read stream files, and list all their problems")(check)
app.command("try", short_help="run all stages on some files, and print the results")(try_)
app.command(short_help="count hours by status, and list findings")(status)
app.command(short_help="explain why an hour is not fresh, and what fixes it")(explain)
app.command(short_help="write a page with findings, hours and results")(report)
app.command(short_help="compare the tables with the ledger, and mark what is damaged")(verify)

app.command(short_help="install Java, Delta's jars and Spark's settings")(setup)


def main() -> None:
    """Run the command line, with the environment that `transom setup` wrote."""
    relax()
    load_environment()
    app(prog_name="transom")


if __name__ == "__main__":
    main()
