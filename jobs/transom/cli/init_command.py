"""`transom init`: draft a stream file from a log's first lines."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transom.app.command_lines import cli_command, file_arguments
from transom.cli.arguments import UsageError, cli_errors

if TYPE_CHECKING:
    from transom.cli.init.try_draft import DraftTrial

LOG = logging.getLogger(__name__)


def init(
    files: Annotated[list[Path], typer.Argument(help="Files of one log; .gz and .zst too.")],
    name: Annotated[
        str | None, typer.Option(help="The stream's name. Default: from the output, or the files.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="The file to write; it must not exist. Default: standard output.")
    ] = None,
) -> None:
    """Write a commented stream file for a log.

    Reads the first MiB of each file, and guesses the format, the columns with their types, the time, and
    what to compute. Guesses that you should check have a comment with a question mark. Prints the lines that
    the draft rejects, with the reason.

    \b
    Example:
      transom init /var/log/nginx/access.log* --output schemas/streams/site.yaml

    Exit code 1 if no line would be an event, 2 if a file cannot be read.
    """
    # Imported late: other commands do not need Arrow and the parsers.
    from transom.cli.init.draft import draft
    from transom.cli.init.infer_path import identifier
    from transom.cli.init.render_yaml import comment
    from transom.cli.log_sample import not_utf8, read_samples

    with cli_errors():
        if output is not None and output.exists():
            raise UsageError(f"{output}: is there already, and is not overwritten; name another file")
        if name is None and output is not None:
            name = identifier(output.stem)[:40].strip("_")
        samples = read_samples(files)
        drafted = draft(samples, name)
        if output is None:
            typer.echo(drafted.text, nl=False)
        else:
            try:
                with output.open("x", encoding="utf-8") as written:
                    written.write(drafted.text)
            except OSError as error:
                raise UsageError(f"{output}: cannot be written: {error.strerror}") from None
        if drafted.untimed:
            LOG.warning(comment(f"{drafted.untimed}: the draft has no `time`, which `check` wants; add one"))
        _print_refused(drafted.trial)
        for sample in samples:
            if sample.nul_bytes:
                skipped = f"{sample.nul_bytes} NUL bytes before lines are skipped"
                LOG.warning(f"{sample.path}: {skipped}: lines may be missing there")
            if sample.other:
                LOG.warning(not_utf8(sample))
        if output is not None:
            check = cli_command("check", output)
            try_ = f"{cli_command('try', output)} {file_arguments([sample.path for sample in samples])}"
            typer.echo(f"{output}: written. Look at its question marks, then:\n  {check}\n  {try_}")


def _print_refused(trial: "DraftTrial") -> None:
    """Print the lines that became no event, to standard error."""
    from transom.cli.init.render_yaml import comment
    from transom.core.terminal import counted, escape_control_chars

    if not trial.rejected:
        return
    are = "is" if trial.rejected == 1 else "are"
    text = [f"{trial.rejected} of {counted(trial.lines, 'line')} {are} rejected by this draft:"]
    for refused in trial.refused:
        such = f" ({refused.lines} such lines)" if refused.lines > 1 else ""
        text.append(f"  {comment(refused.reason)[:160]}{such}")
        text.append(f"    {escape_control_chars(refused.text[:160])}")
    more = trial.rejected - sum(refused.lines for refused in trial.refused)
    if more:
        text.append(f"  and {more} more")
    if any(refused.goes_on for refused in trial.refused):
        text += [
            "  Lines that begin with a blank or have no time seem to be headers, or to continue the line "
            "before them.",
            "  An event is one line, so a run rejects them, too.",
            "  In csv, regex and kv, `options: {comment: TEXT}` skips lines that begin with TEXT.",
        ]
    LOG.warning("\n".join(text))
