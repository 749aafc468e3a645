"""Merge small files of the ledger and of `findings`, so that they stay fast to read after years of runs.

Every run adds files of a few rows, and a claim reads all files of its stage. The rows do not change. One of
two concurrent commits is refused. A claim or record is then retried; a compaction is left to a later run.
Fencing tokens only grow. Merged files stay on the disk, as it is unknown when their last reader ends.
"""

from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import CommitFailedError

from transom.findings.store import NAME
from transom.ledger.ledger import Ledger
from transom.storage.tables import Table

SCATTERED = 64
"""The maximum number of small files of a stage in a table; more are merged."""
FULL = 2**20
"""The target size of a merged file in bytes. Larger files are not merged again."""


def compact(ledger: Ledger, stage: str) -> None:
    """Merge a stage's small files, if there are many."""
    ledger.create(Table.load(NAME))
    for name in (*ledger.tables, NAME):
        table = ledger.open(name)
        files = pa.table(table.get_add_actions(flatten=True))
        own = files["size_bytes"].filter(pc.equal(files["partition.stage"], stage))
        if len(own.filter(pc.less(own, FULL // 2))) > SCATTERED:
            with suppress(CommitFailedError):
                table.optimize.compact([("stage", "=", stage)], target_size=FULL)
