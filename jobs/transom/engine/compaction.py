"""Merges small files of the ledger and of `findings`, so that years of runs stay fast to read.

Every run adds files of a few rows, and a claim reads all files of its stage. The rows stay as they are. Of
two concurrent commits one is refused: a claim or record is tried again, a compaction is left to a later run.
Fencing tokens only grow. Merged files stay on the disk, as no clock tells when nobody reads them any more.
"""

from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import CommitFailedError

from transom.findings.store import NAME
from transom.ledger.ledger import Ledger
from transom.storage.tables import Table

SCATTERED = 64
"""The number of small files of a stage in a table that are not merged yet."""
FULL = 2**20
"""The size in bytes of a file that is not merged again, so that old files grow only with the runs."""


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
