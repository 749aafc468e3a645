"""State that no hour of the present reaches is dropped; `refresh` makes it again where it is needed.

An expired node keeps its digest and its inputs: what was computed from it stays fresh, and the state that
is made again comes out the same, as long as what it is computed from does.

State that other stages read never expires: they run after its own stage, over any hours, and cannot make it
again.

A node that another run is writing is left to that run, which is about to read it: it expires another time.
What a killed run has left looks the same, and may be beyond the reach of every later run; so it expires once
its run has been silent for long. One that is slower than that is overtaken; no row depends on it.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache

from transom.core.intervals import HOUR
from transom.core.partitions import PartitionKey, PartitionState
from transom.engine.publisher import publish
from transom.ledger.ledger import Ledger
from transom.ledger.stage import Stage
from transom.storage.store import Store, Write
from transom.storage.tables import RunSuperseded

Series = tuple[str, str]
"""A block and one of its stage's tables."""

DEAD_CLAIM_AFTER = timedelta(days=1)
"""How long a run commits nothing to the ledger until it is taken for dead; alive, it writes for minutes."""


def expire(
    store: Store, ledger: Ledger, stage: Stage, retention: timedelta, run_id: str, shared: Collection[Series]
) -> int:
    """Drops a stage's state older than its last hour with a row less the retention.

    Args:
        shared: block and table of the state that other stages read, and that is kept.

    Returns:
        How many nodes have expired; none, where another run came in between.
    """
    steps = {step.table.name: step for step in stage.steps if step.table.state}
    book = ledger.snapshot([stage.name])
    last = book.hours(stage.name).last
    if not steps or last is None:
        return 0

    def kept(node: PartitionKey) -> timedelta:
        # The next hour of a chain reads these: without them it would be made from its beginning.
        return max(retention, steps[node.table].back(node.block) * HOUR)

    entries: dict[PartitionKey, PartitionState] = {}
    targets: dict[str, dict[str | None, set[datetime]]] = {name: {} for name in steps}
    dead = cache(lambda run: ledger.idle_time(run) >= DEAD_CLAIM_AFTER)
    for node, entry in book.having(["published", "writing"], steps, before=last - retention):
        if (node.block, node.table) in shared or node.hour >= last - kept(node):
            continue
        if entry.status == "published" or dead(entry.run_id):
            entries[node] = replace(entry.state_before_claim(), status="expired", rows=0)
            targets[node.table].setdefault(node.block, set()).add(node.hour)
    writes = [
        Write(steps[name].table, steps[name].table.arrow_schema().empty_table(), hours)
        for name, hours in targets.items()
        if hours
    ]
    try:
        publish(store, ledger, stage.name, run_id, writes, entries, book)
    except RunSuperseded:
        # All that this run was asked for is published: what it tidies up, another may.
        return 0
    return len(entries)
