"""Print the most frequent items of a try: those of the last report of each block."""

import typer
from deltalake import DeltaTable

from transom.core.durations import format_duration
from transom.core.terminal_tables import table
from transom.features.frequency.spec import Frequency
from transom.spec.stream import Stream
from transom.storage.tables import query

ROWS = 10
"""Items shown for each block."""


def print_frequencies(stream: Stream, root: str) -> None:
    """Print the most frequent items of the last report of each block."""
    uri = f"{root}/frequencies"
    for name, block in stream.blocks(Frequency).items():
        # Vanilla has no window.
        window = "" if block.variant == "vanilla" else f"in the {format_duration(block.window)} "
        of_block = f"SELECT * FROM t WHERE block = '{name}' AND low IS NOT NULL"
        last = f"SELECT * FROM ({of_block}) WHERE hour = (SELECT max(hour) FROM ({of_block})) ORDER BY rank"
        rows = query(DeltaTable(uri), last).to_pylist() if DeltaTable.is_deltatable(uri) else []
        if not rows:
            typer.echo(f"\n{name}: no {', '.join(block.item)} {window}up to the last report")
            continue
        shown = [
            [
                row["rank"], *(row[column] for column in block.item), row["estimate"],
                f"{row['low']} to {row['high']}", f"{row['estimate'] / row['window_records']:.1%}",
                row["since"],
            ]
            for row in rows[:ROWS]
        ]  # fmt: skip
        columns = ["rank", *block.item, "times", "between", "share", "heavy since"]
        first = rows[0]
        title = (
            f"{name}: {', '.join(block.item)} {window}up to {first['window_end']:%Y-%m-%dT%H:%M}, "
            f"{first['window_records']} records; others at most {first['max_unreported']} times"
        )
        table(title, columns, shown)
