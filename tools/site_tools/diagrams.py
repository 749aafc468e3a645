"""Draw the tasks of a DAG, and the messages of a run that publishes partitions."""

from collections.abc import Iterator
from itertools import pairwise

from site_tools.svg import WIDTH, Picture

START = ("settle", "ingest", "ingest_gate")
BRANCHES = (
    ("aggregates", "aggregates_gate", "frames", "frames_gate", "fills", "fills_gate"),
    ("patterns", "patterns_gate"),
    ("persistence", "persistence_gate"),
    ("frequency", "frequency_gate"),
)
"""Tasks between the first gate and the report."""
LAST = ("report", "notify")

STEPS = (
    ("ledger", "read input hashes and digests"),
    ("run", "compute, stage, hash, check"),
    ("ledger", "claim partitions, get a token"),
    ("table", "replace the hours in one commit"),
    ("ledger", "record status, digest, input hashes"),
)
"""What a run does, and with what."""


def edges() -> Iterator[tuple[str, str]]:
    """Yield each pair of tasks of which the second waits for the first, in the picture of a DAG."""
    for branch in BRANCHES:
        yield from pairwise([*START, *branch, *LAST])


def dag() -> Picture:
    """The tasks of a DAG: the first ones from left to right, then one column for each branch."""
    picture, column, row = Picture(), WIDTH / len(BRANCHES), 42
    width = column - 12

    def task(name: str, x: float, y: float) -> None:
        gate = name.endswith("_gate")
        picture.rectangle(x - width / 2, y, width, "soft" if gate else "box", 28)
        picture.text(x, y + 5, "gate" if gate else name)

    def x(place: int) -> float:
        return (place + 0.5) * column

    for place, name in enumerate(START):
        task(name, x(place), row * 0.5)
        if place:
            picture.polyline(
                [(x(place) - column + width / 2, row * 0.5), (x(place) - width / 2, row * 0.5)], "arrow"
            )
    first, last = 1.75, max(map(len, BRANCHES)) + 2
    fork, join = (first - 0.6) * row, (last - 0.7) * row
    picture.polyline([(x(len(START) - 1), row * 0.5 + 14), (x(len(START) - 1), fork)])
    picture.polyline([(x(0), fork), (x(len(BRANCHES) - 1), fork)])
    for place, branch in enumerate(BRANCHES):
        picture.polyline([(x(place), fork), (x(place), first * row - 14)], "arrow")
        for number, name in enumerate(branch):
            y = (first + number) * row
            task(name, x(place), y)
            if number:
                picture.polyline([(x(place), y - row + 14), (x(place), y - 14)], "arrow")
        picture.polyline([(x(place), (first + len(branch) - 1) * row + 14), (x(place), join)])
    picture.polyline([(x(0), join), (x(len(BRANCHES) - 1), join)])
    picture.polyline([(WIDTH / 2, join), (WIDTH / 2, last * row - 14)], "arrow")
    for number, name in enumerate(LAST):
        task(name, WIDTH / 2, (last + number) * row)
    picture.polyline([(WIDTH / 2, last * row + 14), (WIDTH / 2, (last + 1) * row - 14)], "arrow")
    picture.height = (last + len(LAST) - 0.5) * row
    return picture


def publish() -> Picture:
    """The messages between a run, the ledger and a table."""
    picture, at = Picture(), {"run": 40.0, "ledger": 310.0, "table": 435.0}
    row, y = 44, 48.0
    end = y + row * len(STEPS)
    for name, x in at.items():
        picture.rectangle(x - 38, 16, 76, "box", 28)
        picture.text(x, 21, name)
        picture.polyline([(x, 30), (x, end)])
    for whom, text in STEPS:
        picture.text(at["run"] + 10, y + 12, text, "start")
        if whom == "run":
            picture.polyline(
                [(at["run"], y + 4), (at["run"] - 20, y + 4), (at["run"] - 20, y + 20), (at["run"], y + 20)],
                "arrow",
            )
        else:
            picture.polyline([(at["run"], y + 20), (at[whom], y + 20)], "arrow")
        y += row
    picture.rectangle(2, end + 28, WIDTH - 4, "soft", 52)
    picture.text(WIDTH / 2, end + 22, "killed between any two steps: the partition is not fresh,")
    picture.text(WIDTH / 2, end + 44, "and the next run computes it again")
    picture.height = end + 58
    return picture
