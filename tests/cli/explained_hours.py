"""What `transom explain` prints of an hour, and the command that it advises."""

from collections.abc import Callable

from typer.testing import Result

from tests.cli.ledger_by_hand import Lake
from transom.cli.explain import WHY

Ask = Callable[..., Result]
OTHERWISE = "the stream file has changed since it was computed"


def explanation(run: Ask, lake: Lake, hour: str) -> list[str]:
    """Return the lines after the first, which names stream, hour and lake: first the reasons, then the files
    and the command, which are printed before them.
    """
    result = run("explain", "web", hour)
    first, *lines = result.stdout.splitlines()
    assert first == f"web {hour}, in {lake.uri}"
    why = f"  {WHY}"
    advice = lines[: lines.index(why)] if why in lines else []
    assert result.exit_code == int("--from" in "".join(advice[-1:]))
    return [*lines[len(advice) + (why in lines) :], *advice]


def command(lake: Lake, start: str, end: str) -> str:
    job = f"{lake.folder}/jobs/run.py --stream {lake.file} --lake {lake.uri}"
    return f"    spark-submit {job} --from {start} --to {end}"
