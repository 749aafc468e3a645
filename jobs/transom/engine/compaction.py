"""Small files of the ledger and of `findings` are brought together, so that years of runs stay quick to read.

Every run adds files of a few rows to these tables, and a claim reads all that there are of its stage.
The rows stay as they are, and nothing reads the ledger as it was. Where another run commits at the same
time one of the two is refused: a claim or a record is tried again, and the files are left to a later run.
Fencing tokens only grow by it. What was brought together stays in the lake's folder: no clock says when
nobody reads it any more.
"""

from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import CommitFailedError

from transom.findings.store import NAME
from transom.ledger.ledger import Ledger
from transom.storage.tables import Table

SCATTERED = 64
"""Small files of a stage in a table, up to which they are left as they are."""
FULL = 2**20
"""Bytes of a file that is not written again, so that what is left behind grows with the runs alone."""


def compact(ledger: Ledger, stage: str) -> None:
    """Brings a stage's small files together, where they are many."""
    ledger.create(Table.load(NAME))
    for name in (*ledger.tables, NAME):
        table = ledger.open(name)
        files = pa.table(table.get_add_actions(flatten=True))
        own = files["size_bytes"].filter(pc.equal(files["partition.stage"], stage))
        if len(own.filter(pc.less(own, FULL // 2))) > SCATTERED:
            with suppress(CommitFailedError):
                table.optimize.compact([("stage", "=", stage)], target_size=FULL)
