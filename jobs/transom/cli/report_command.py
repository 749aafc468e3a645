"""`transom report`: the page of a stream as one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transom.cli.arguments import StreamArgument, UsageError, cli_errors, stream_of
from transom.cli.lake_argument import LakeOption, lake, reading

if TYPE_CHECKING:
    from transom.views.view import View


class NoRunError(UsageError):
    """No run of the stream is in the lake."""

    code = 1


HtmlOption = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write the page to this file.")
]


def report(
    stream: StreamArgument,
    html: HtmlOption = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="HOUR", help="The first hour; with --to.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="HOUR", help="The end of the hours, exclusive.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Only what is known of this key, such as client=10.0.0.1."),
    ] = None,
    lake_named: LakeOption = None,
) -> None:
    """Write a page with the findings of a stream, the state of its hours, and its results.

    The file opens in any browser, without network and Airflow. Without --from and --to it has the last 31
    days. Starts no Spark, and changes no table.

    \b
    Example:
      transom report site --html site.html
      transom report site --from 2015-05-17T00:00 --to 2015-05-18T00:00 --key client=10.0.0.1

    Exit code 1 if the stream never ran in this lake, 2 if the stream, the lake or the key is wrong, or the
    file cannot be written.
    """
    from transom.core.intervals import Interval
    from transom.storage.tables import LakeError
    from transom.views.view import NothingToView, view_of

    with cli_errors(ValueError, LakeError):
        if (start is None) != (end is None):
            raise UsageError(f"--from and --to: must be given together; got --from {start}, --to {end}")
        interval = None if start is None or end is None else Interval.parse(start, end)
        _, declared = stream_of(stream)
        uri = lake(lake_named)
        try:
            with reading(f"{uri}/{declared.name}"):
                view = view_of(uri, declared, interval, key)
        except NothingToView as error:
            raise NoRunError(error) from None
        write_page(view, html or Path(f"{declared.name}.html"))


def write_page(view: "View", file: Path) -> None:
    """Write the page of a view to a file, and print its name.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        file.write_text(view.page(), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--html: cannot write {file}: {error.strerror}") from None
    typer.echo(f"written: {file}")
