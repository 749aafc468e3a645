"""Delete state that no current hour reads; a later run computes it again if it is needed.

An expired partition keeps its digest and its input hashes. So its readers stay fresh, and it gets the same
rows again if its inputs have not changed.

State that other stages read does not expire: they run later, over any hours, and cannot compute it.

Partitions that another run is writing are left to it. Those of a killed run look the same, and perhaps no
later run reaches them. So they expire when their run has committed nothing for long. If that run is
slow, it is superseded, which changes no row.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache

from transom.core.intervals import HOUR
from transom.core.partitions import PartitionKey, PartitionState
from transom.engine.publisher import publish_partitions
from transom.ledger.ledger import Ledger
from transom.ledger.stage import Stage
from transom.storage.fencing import RunSuperseded
from transom.storage.store import Store
from transom.storage.write import Write

Series = tuple[str, str]
"""A block and one of its stage's tables."""
DEAD_CLAIM_AFTER = timedelta(days=1)
"""A run that commits nothing for this long counts as dead; writing takes minutes."""


def expire(
    store: Store, ledger: Ledger, stage: Stage, retention: timedelta, run_id: str, shared: Collection[Series]
) -> int:
    """Delete the state of a stage that is older than the retention before the stage's last hour.

    Args:
        store: the store of the tables.
        ledger: the ledger of the stream.
        stage: the stage.
        retention: how long before the last hour of the stage state is retained.
        run_id: the run.
        shared: block and table of the state that other stages read, which stays.

    Returns:
        The number of expired partitions; 0 if a concurrent run changed the ledger.
    """
    steps = {step.table.name: step for step in stage.steps if step.table.state}
    snapshot = ledger.snapshot([stage.name])
    last = snapshot.hours(stage.name).last
    if not steps or last is None:
        return 0
    states: dict[PartitionKey, PartitionState] = {}
    targets: dict[str, dict[str | None, set[datetime]]] = {name: {} for name in steps}
    is_dead = cache(lambda run: ledger.idle_time(run) >= DEAD_CLAIM_AFTER)
    for key, state in snapshot.having(["published", "writing"], steps, before=last - retention):
        # Without the hours that its next hour reads, a chain would be computed from its beginning.
        retained = max(retention, steps[key.table].back(key.block) * HOUR)
        if (key.block, key.table) in shared or key.hour >= last - retained:
            continue
        if state.status == "published" or is_dead(state.run_id):
            states[key] = replace(state.state_before_claim(), status="expired", rows=0)
            targets[key.table].setdefault(key.block, set()).add(key.hour)
    writes = [
        Write(steps[name].table, steps[name].table.arrow_schema().empty_table(), hours)
        for name, hours in targets.items()
        if hours
    ]
    try:
        publish_partitions(store, ledger, stage.name, run_id, writes, states, snapshot)
    except RunSuperseded:
        return 0  # all requested hours are published; a later run may delete
    return len(states)
