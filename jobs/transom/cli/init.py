"""`transom init`: a first stream file, made of a log's first lines."""

from pathlib import Path
from typing import Annotated

import typer

from transom.cli.asked import Refusal, refusals
from transom.commands import transom


def init(
    files: Annotated[list[Path], typer.Argument(help="Files of one log; .gz and .zst too.")],
    name: Annotated[str | None, typer.Option(help="The stream's name; made of the files' else.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="The file to write, which must not be there; else standard output.")
    ] = None,
) -> None:
    """Write a commented stream file for a log.

    Reads the first lines of each file (1 MiB), and guesses the format, the columns and their types, which
    is the time, what is worth a figure. What it cannot know it says in a comment.

    \b
    Example:
      transom init /var/log/nginx/access.log* --output schemas/streams/web.yaml
      transom check schemas/streams/web.yaml
    """
    # Arrow and the parsers, which other commands do without.
    from transom.cli.draft import draft
    from transom.cli.sample import read_sample

    with refusals():
        if output is not None and output.exists():
            raise Refusal(f"{output}: is there already, and is not overwritten; name another file")
        text = draft([read_sample(file) for file in files], name)
        if output is None:
            typer.echo(text, nl=False)
            return
        try:
            with output.open("x", encoding="utf-8") as written:
                written.write(text)
        except OSError as error:
            raise Refusal(f"{output}: cannot be written: {error.strerror}") from None
        check, try_ = transom("check", output), transom("try", output, *files)
        typer.echo(f"{output}: written; these come next:\n  {check}\n  {try_}")
