"""The past of a lake, made up: tables as hourly runs over many earlier hours would have left them.

An hour of the past has the rows of an hour that has really been run, under its own times. The ledger is one
that calls all of it fresh: what an hour was computed from follows from the hours before. Rows go through the
project's own writers. In a table's log each hour is a commit of its own then.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake

from transom.intervals import HOUR, Interval
from transom.job import root_of, tell
from transom.lake import parts, small, store
from transom.lake.book import Book, Entry, Node
from transom.lake.ledger import Ledger
from transom.lake.staleness import Staleness
from transom.lake.tables import instant, query
from transom.stages.checks import accepted_of
from transom.stages.files import source_id
from transom.stages.landing import Landing, Names
from transom.stages.lineage import outlines
from transom.stream import Stream

KEPT_LOG = timedelta(days=2)
"""How far back the ledger's log goes."""
RUN = "run of the past"


class Past:
    """What a lake is to have lived through.

    Args:
        hours: of the past; their files have landed.
        lived: the hours that follow, which have really been run; an hour of the past is like the one that
            lies so many times their length behind it.
    """

    def __init__(self, lake: str, stream: Stream, hours: Interval, lived: Interval) -> None:
        self.root, self.stream, self.hours, self.lived = root_of(lake, stream), stream, hours, lived
        self.length = lived.end - lived.start
        self.ledger = Ledger(self.root)

    def write(self) -> None:
        """Gives it to the lake."""
        self._ledger()
        for name in sorted({table for _, _, table in self.ledger.book().names}):
            self._table(name)
        self._log("checks", f"hour >= {instant(self.lived.start)}", self.length)
        self._log(
            "runs", f'"to" = {instant(self.lived.end)} AND "from" = {instant(self.lived.end - HOUR)}', HOUR
        )
        for stage in self.stream.stages:
            tell(self.ledger, self.stream, stage, {})

    def model(self, hour: datetime) -> datetime:
        """The hour that one of the past is like."""
        return hour + -((hour - self.lived.start) // self.length) * self.length

    def _ledger(self) -> None:
        """Gives each node that has been run its like in the past, table after table in the order of reading."""
        book = self.ledger.book()
        for stage in self.stream.stages:
            outline = outlines(self.stream).get(stage)
            named = {table for of, _, table in book.names if of == stage}
            made: dict[Node, Entry] = {}
            for table in [step.table.name for step in outline.steps] if outline else sorted(named):
                series = [one for one in book.names if (one[0], one[2]) == (stage, table)]
                hours = list(self.hours.hours())
                new = {Node(*one, h): book[Node(*one, self.model(h))] for one in series for h in hours}
                book = book.updated(new)
                if outline:
                    # The real hours, too, were computed when nothing came before them.
                    staleness = Staleness(outline, book, accepted_of(self.stream))
                    own = [node for node in book if (node.stage, node.table) == (stage, table)]
                    new = {node: _made_of(book[node], staleness.inputs(node)) for node in own}
                    book = book.updated(new)
                made |= new
            self.ledger._commit(stage, partial(_entries, made), RUN)

    def _table(self, name: str) -> None:
        """Writes the rows of the past, as many hours at a time as have been run; each is a commit then."""
        uri = f"{self.root}/{name}"
        table = DeltaTable(uri)
        before, lake = table.version(), store.Store(None, self.root)  # type: ignore[arg-type]
        rows = small.Stored(table).rows(list(self.lived.hours()))
        if not rows.num_rows:
            return
        for number in count(1):
            moved = _moved(rows, -number * self.length)
            moved = moved.filter(pc.greater_equal(moved["hour"], self.hours.start)).sort_by("hour")
            if name == "files":
                moved = pa.Table.from_pylist(list(self._files(moved)), moved.schema)
                write_deltalake(uri, moved, mode="append")
            elif moved.num_rows:
                batches = moved.combine_chunks().to_batches()
                made = parts.written(
                    lake.uri(name), f"past-{number}", "part", batches, "hour", partition=True
                )
                table = DeltaTable(uri)
                added = [*map(store._added, made)]
                table.create_write_transaction(added, "append", table.schema(), ["hour"])  # type: ignore[arg-type]
            if self.lived.start - number * self.length <= self.hours.start:
                break
        _one_by_one(Path(uri), before)
        DeltaTable(uri).create_checkpoint()

    def _files(self, rows: pa.Table) -> Iterator[dict[str, Any]]:
        """Rows of `files` as what has landed says it, each of another content."""
        landing = Landing.looked_into(Names.of(self.stream))
        for row in rows.to_pylist():
            path = self.stream.path_pattern.of(row["hour"]).replace("*", "")
            content, found = hashlib.sha256(path.encode()).hexdigest(), landing.listed(path)
            assert found is not None
            known = source_id(content, **found.identity)
            yield row | {
                "path": path, "source_id": known, "seen_id": known, "content": content, "size": found.size,
                "modified": found.modified,
            }  # fmt: skip

    def _log(self, name: str, where: str, apart: timedelta) -> None:
        """Rows of a table of the ledger that is only added to: those of some rows, again and again."""
        table = self.ledger.open(name)
        rows = query(table, f"SELECT * FROM t WHERE {where}").cast(pa.schema(table.schema().to_arrow()))
        many = -(-(self.hours.end - self.hours.start) // apart)
        made = [_moved(rows, -number * apart) for number in range(1, many + 1)]
        write_deltalake(table, pa.concat_tables(made), mode="append")


def with_commits(root: str, name: str, many: int) -> None:
    """Gives a table's log so many commits more, in which nothing changes, as hourly runs do."""
    table = DeltaTable(f"{root}/{name}")
    log = Path(root) / name / "_delta_log"
    said = json.dumps({"commitInfo": {"timestamp": 1, "operation": "WRITE"}})
    for version in range(table.version() + 1, table.version() + 1 + many):
        (log / f"{version:020}.json").write_text(said)
    table.update_incremental()
    table.create_checkpoint()


def _entries(made: Mapping[Node, Entry | None], book: Book) -> Mapping[Node, Entry | None]:
    return made


def _made_of(entry: Entry, inputs: Mapping[str, str]) -> Entry:
    return Entry(entry.status, entry.run_id, entry.complete, entry.digest, inputs, entry.rows)


def _moved(rows: pa.Table, by: timedelta) -> pa.Table:
    """Rows at other times, those in lists and structures among them."""
    micros = by // timedelta(microseconds=1)

    def moved(array: pa.Array) -> pa.Array:
        if pa.types.is_timestamp(array.type):
            return pc.add(array.cast(pa.int64()), micros).cast(array.type)
        if pa.types.is_list(array.type):
            inside = moved(array.flatten())
            return pa.ListArray.from_arrays(array.offsets, inside, mask=array.is_null())
        return array

    rows = rows.combine_chunks()
    columns = [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in rows.columns]
    return pa.Table.from_arrays([moved(column).cast(column.type) for column in columns], schema=rows.schema)


def _one_by_one(folder: Path, before: int) -> None:
    """Makes a commit of each file that commits after one have added."""
    log = folder / "_delta_log"
    commits = sorted(file for file in log.glob("*.json") if int(file.stem) > before)
    said = [json.loads(line) for file in commits for line in file.read_text().splitlines()]
    for file in log.iterdir():
        if file.name.startswith("_") or int(file.name.partition(".")[0]) > before:
            file.unlink()
    info = next(one for one in said if "commitInfo" in one)
    for version, one in enumerate((one for one in said if "add" in one), before + 1):
        (log / f"{version:020}.json").write_text(f"{json.dumps(info)}\n{json.dumps(one)}\n")
