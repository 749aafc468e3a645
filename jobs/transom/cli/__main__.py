"""`transom`: the commands, a module each."""

import typer

from transom.cli.check import check
from transom.cli.explain import explain
from transom.cli.init import init
from transom.cli.status import status
from transom.cli.trying import try_

HELP = """Event logs, hour by hour: declare a stream, try it, see what stands.

A stream is a log that a YAML file declares. It is named by that file or, if it lies in schemas/streams (or
the folder in TRANSOM_STREAMS), by its name.

\b
  transom init access.log > web.yaml        a first stream file, made of the log's first lines
  transom try web.yaml access.log           what it finds in them
  transom status                            what stands in the lake
  transom explain web 2015-05-17T10:00      why an hour is not fresh, and what mends it
"""

# Plain help and errors: they read the same in a terminal, a log and a mail.
app = typer.Typer(
    name="transom",
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(init)
app.command()(check)
app.command("try")(try_)
app.command()(status)
app.command()(explain)

if __name__ == "__main__":
    app(prog_name="transom")
