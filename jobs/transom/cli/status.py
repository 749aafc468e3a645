"""`transom status`: the state of each stream and stage, from the ledger alone."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transom.cli.arguments import JsonOption, cli_errors, print_json, stream_of
from transom.cli.lake_argument import LakeOption, lake, ledger_of, reading, streams_in
from transom.spec.endings import endings
from transom.spec.stream import Stream
from transom.stream_files import folder, streams

if TYPE_CHECKING:
    from transom.core.partitions import PartitionKey
    from transom.ledger.snapshot import LedgerSnapshot

COLUMNS = (
    "stream", "stage", "requested", "published", "incomplete", "quarantined", "blocked", "writing", "damaged",
    "stale", "last run", "seconds", "trigger",
)  # fmt: skip
TROUBLES = COLUMNS[4:9]
WORST = ("damaged", "writing", "quarantined", "blocked", "incomplete", "published", "expired")
"""States, worst first: an hour has the worst state of its partitions."""
MAX_FINDINGS, MAX_OF_BLOCK = 20, 3
"""Maximum number of findings that are shown: in total, and per kind and block."""
MAX_WAIVED = 5
"""Maximum number of waived checks that are shown, latest first."""
SOON = timedelta(days=7)
"""How long before its end, by the last requested hour, an entry of the stream file is shown."""
MAX_CAUSES = 3
"""Maximum number of upstream causes of a stage that are shown one by one."""


def status(
    stream: Annotated[
        str | None, typer.Argument(metavar="[STREAM]", help="A stream file, or a name. Default: all streams.")
    ] = None,
    lake_named: LakeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the state of the ledger: hours by status, the last runs, findings.

    An hour is stale if the stream file, the code or the rows from which it is computed have changed since.
    Does not look for files that arrived or changed since the last run; `explain` does.

    \b
    Example:
      transom status
      transom status site --lake /data/lake

    Exit code 1 if an hour is not fresh or a stream never ran, 2 if a stream or the lake cannot be read.
    """
    from transom.storage.tables import LakeError, TableMismatch

    with cli_errors(LakeError, TableMismatch):
        sound, errors = streams() if stream is None else (dict([stream_of(stream)]), [])
        uri = lake(lake_named)
        states = []
        for declared in sound.values():
            with reading(f"{uri}/{declared.name}"):
                states.append(_state(declared, uri))
            if not as_json:
                _print_state(states[-1])
        names = {declared.name for declared in sound.values()}
        others = [name for name in streams_in(uri) if name not in names] if stream is None else []
        if as_json:
            print_json({"lake": uri, "streams": states, "others": others, "invalid": list(map(str, errors))})
        elif others:
            place = f"without a stream file that can be used in {folder()}"
            typer.echo(f"\nalso in {uri}, {place}: {', '.join(others)}")
    for error in errors if not as_json else ():
        typer.echo(error, err=True)
    if errors or not all(state["fresh"] for state in states):
        raise typer.Exit(2 if errors else 1)


def _state(stream: Stream, uri: str) -> dict[str, Any]:
    """Return the state of a stream, as `--json` prints it."""
    from transom.app.freshness import freshness_of, snapshot_of
    from transom.engine.external import NeverRun
    from transom.features.registry import FINDING_ORDER
    from transom.findings.store import select_findings
    from transom.ledger.waivers import format_waived
    from transom.views.file_remarks import known_files, remarks

    root = f"{uri}/{stream.name}"
    ledger = ledger_of(root)
    state: dict[str, Any] = {
        "stream": stream.name, "lake": uri, "fresh": False, "stages": [], "remarks": [], "accepted": [],
        "last_run": None, "findings": [], "more_findings": None,
    }  # fmt: skip
    if ledger is None:
        return state
    runs, waits = ledger.runs(), []
    try:
        snapshot = snapshot_of(stream, ledger)
    except NeverRun as error:
        snapshot, waits = ledger.snapshot(), [str(error)]
    freshness = freshness_of(stream, snapshot)
    rows, lines = [], []
    for stage in stream.stages:
        last = next((run for run in reversed(runs) if run["stage"] == stage), None)
        stale = freshness.stale(stage)
        about = (
            (last["finished_at"], last["phase_seconds"]["total"], last["trigger"]) if last else (None,) * 3
        )
        rows.append((stream.name, stage, *_counts(snapshot, stage), len(stale), *about))
        lines += _upstream(stage, stale, snapshot)
    damaged = _damaged(snapshot)
    selected, rest = select_findings(root, MAX_FINDINGS, MAX_OF_BLOCK, FINDING_ORDER)
    return {
        **state,
        # Hours that are not requested can be damaged, too.
        "fresh": not waits and not damaged and not any(any(row[4:10]) for row in rows),
        "stages": [dict(zip(COLUMNS, row, strict=True)) for row in rows],
        "remarks": [
            *lines,
            *damaged,
            *waits,
            *remarks(stream, known_files(root), snapshot),
            *_endings(stream, snapshot),
        ],
        "accepted": [format_waived(r) for stage in stream.stages for r in ledger.accepted(snapshot, stage)],
        "last_run": runs[-1]["finished_at"] if runs else None,
        "findings": selected,
        "more_findings": rest,
    }


def _print_state(state: Mapping[str, Any]) -> None:
    """Print the state of a stream."""
    from transom.core.terminal_tables import plain, table

    if not state["stages"]:
        typer.echo(f"\n{state['stream']}: no run yet in {state['lake']}")
        return
    table(f"{state['stream']} in {state['lake']}", COLUMNS, [[*row.values()] for row in state["stages"]])
    for line in state["remarks"]:
        typer.echo(f"  {plain(line)}")
    accepted = state["accepted"]
    for line in accepted[-MAX_WAIVED:]:
        typer.echo(f"  {line}")
    if len(accepted) > MAX_WAIVED:
        typer.echo(f"  ... and {len(accepted) - MAX_WAIVED} earlier ones in the table checks")
    if state["findings"]:
        last_run = f" ({state['last_run']:%Y-%m-%dT%H:%M})" if state["last_run"] else ""
        typer.echo(f"  found as of the last run{last_run}; `explain` also looks at files that arrived since:")
    for finding in [*state["findings"], *([state["more_findings"]] if state["more_findings"] else [])]:
        typer.echo(f"  {plain(finding)}")


def _upstream(stage: str, stale: "Mapping[datetime, PartitionKey]", snapshot: "LedgerSnapshot") -> list[str]:
    """Return the causes in other stages of a stage's stale hours."""
    from transom.core.intervals import format_hours
    from transom.engine.gate_text import format_roots

    others = {hour: root for hour, root in stale.items() if root.stage != stage}
    causes = [
        f"stale: {stage} of {format_hours(hours)}, as {cause}"
        for cause, hours in format_roots(others, snapshot).items()
    ]
    if len(causes) > MAX_CAUSES:
        causes[MAX_CAUSES:] = [f"stale: {stage}, for {len(causes) - MAX_CAUSES} further reasons"]
    return causes


def _endings(stream: Stream, snapshot: "LedgerSnapshot") -> list[str]:
    """Return a line per entry of the stream file that has ended by the last requested hour, or soon will."""
    from transom.core.intervals import HOUR

    last = snapshot.required_hours.last
    if last is None:
        return []
    dated = [(place, entry, entry.until - HOUR - last) for place, entry in endings(stream) if entry.until]
    return [
        f"{place} {'ended' if left <= timedelta(0) else 'ends'} at {entry.describe()}"
        for place, entry, left in dated
        if left <= SOON
    ]


def _damaged(snapshot: "LedgerSnapshot") -> list[str]:
    """Return a line per stage and table with hours marked as damaged; these count as stale."""
    from transom.core.intervals import format_hours
    from transom.core.partitions import SOURCE_STAGE

    hours: dict[tuple[str, str], set[datetime]] = {}
    for partition, state in sorted(snapshot.items()):
        if state.damaged:
            hours.setdefault((partition.stage, partition.table), set()).add(partition.hour)
    return [
        f"damaged: {stage}, {name}, {format_hours(of_table)}: a run over these hours"
        f"{', and over all that their files touch,' if stage == SOURCE_STAGE else ''} computes them again"
        for (stage, name), of_table in hours.items()
    ]


def _counts(snapshot: "LedgerSnapshot", stage: str) -> list[int]:
    """Return the number of requested hours of a stage, in total and per state of `COLUMNS`."""
    hours = snapshot.required_hours
    states: dict[datetime, str] = {}
    for partition, state in snapshot.items():
        if partition.stage == stage and partition.hour in hours:
            word = state.status if state.complete or state.status != "published" else "incomplete"
            states[partition.hour] = min(word, states.get(partition.hour, word), key=WORST.index)
    counts = Counter(states.values())
    return [len(hours), counts["published"] + counts["expired"], *(counts[word] for word in TROUBLES)]
