"""State that no hour of the present reaches is dropped; `refresh` makes it again where it is needed.

An expired node keeps its digest and its inputs: what was computed from it stays fresh, and the state that
is made again comes out the same, as long as what it is computed from does.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from transom.lake.book import Entry, Node
from transom.lake.ledger import Ledger
from transom.lake.publishing import publish
from transom.lake.stage import Stage
from transom.lake.store import Store, Write


def expire(store: Store, ledger: Ledger, stage: Stage, retention: timedelta, run_id: str) -> int:
    """Drops a stage's state older than its last hour with a row less the retention.

    Returns:
        How many nodes have expired.
    """
    steps = {step.table.name: step for step in stage.steps if step.table.state}
    book = ledger.book([stage.name])
    if not steps or not book:
        return 0
    cutoff = max(book.hours(stage.name)) - retention
    entries: dict[Node, Entry] = {}
    targets: dict[str, dict[str | None, set[datetime]]] = {name: {} for name in steps}
    for node, entry in book.items():
        # What a killed run has left is out of every later run's reach, but for this one.
        if node.table in steps and node.hour < cutoff and entry.status in ("published", "writing"):
            entries[node] = replace(entry.before(), status="expired", rows=0)
            targets[node.table].setdefault(node.block, set()).add(node.hour)
    writes = [
        Write(steps[name].table, steps[name].table.arrow_schema().empty_table(), hours)
        for name, hours in targets.items()
        if hours
    ]
    publish(store, ledger, stage.name, run_id, writes, entries, book)
    return len(entries)
