"""Merge small files of the ledger and of `findings`, so that they stay fast to read after years of runs.

Every run adds files of a few rows, and a claim reads all files of its stage. The rows do not change. One of
two concurrent commits is refused. A claim or record is then retried; a compaction is left to a later run.
Fencing tokens only grow. Merged files stay on the disk, as it is unknown when their last reader ends.

When files of `runs` are merged, the details of runs that ended a year before the last one are deleted, those
of a month at once.
"""

from contextlib import suppress
from datetime import timedelta
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError

from transom.findings.store import NAME
from transom.ledger.ledger import Ledger
from transom.ledger.run_details import DETAILS, KEPT_DAYS
from transom.storage.tables import Table, instant, literal, query

SCATTERED = 8
"""The maximum number of files of about the same size of a stage in a table; more are merged."""
SIZES = (2**16, 2**18, 2**20)
"""The target sizes of merged files in bytes. Only files below half of a size count for a merge to it, so that
large files are rarely written again, however many runs follow. A file costs a query half a millisecond."""
AT_ONCE = timedelta(days=30)
"""The time of the runs whose details are deleted at once: each deletion writes a large file again."""


def compact(ledger: Ledger, stage: str) -> None:
    """Merge a stage's small files, if there are many."""
    ledger.create(Table.load(NAME))
    for name in (*ledger.tables, NAME):
        table = ledger.open(name)
        files = pa.table(table.get_add_actions(flatten=True))
        own = files["size_bytes"].filter(pc.equal(files["partition.stage"], stage))
        for smaller, size in pairwise((0, *SIZES)):
            alike = pc.and_(pc.greater_equal(own, smaller // 2), pc.less(own, size // 2))
            if len(own.filter(alike)) > SCATTERED:
                with suppress(CommitFailedError):
                    table.optimize.compact([("stage", "=", stage)], target_size=size)
                    if name == "runs":
                        delete_details(table, stage)
                # The sizes are no longer known; larger files can wait for the next run.
                break


def delete_details(runs: DeltaTable, stage: str) -> None:
    """Delete the details of a stage's runs that ended `KEPT_DAYS` before its last; their other columns stay.

    Nothing is deleted until the oldest details are older by `AT_ONCE`.

    Raises:
        CommitFailedError: another commit has changed the table meanwhile.
    """
    # A predicate on a list is refused; so files without details are skipped by their times.
    own = f"stage = {literal(stage)}"
    times = "min(finished_at) AS first, max(finished_at) AS last"
    sql = f"SELECT {times} FROM t WHERE {own} AND written IS NOT NULL"
    (ends,) = query(runs, sql).to_pylist()
    if ends["first"] is None:
        return
    before = ends["last"] - timedelta(days=KEPT_DAYS)
    if ends["first"] >= before - AT_ONCE:
        return
    runs.update(
        updates=dict.fromkeys(DETAILS, "NULL"),
        predicate=f"{own} AND finished_at >= {instant(ends['first'])} AND finished_at < {instant(before)}",
        commit_properties=CommitProperties(max_commit_retries=0),
    )
