"""The examples of nested records are drafts with at most three edits by a user."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cli.examples import DATA, stream_file
from tests.cli.record_examples import RECORD_EXAMPLES, log_of
from transom.cli.init.draft import draft
from transom.cli.log_sample import read_sample
from transom.stream import load

EDITS = 3


def settings(data: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the settings of a stream file, a column or another setting each."""
    for name, value in data.items():
        path = f"{above}{name}"
        if isinstance(value, dict) and path in ("source", "columns", "aggregates", "aggregates.activity"):
            yield from settings(value, f"{path}.")
        else:
            yield path, repr(value)


@pytest.mark.parametrize("name", RECORD_EXAMPLES)
def test_example_differs_from_its_draft_in_at_most_three_edits(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("TRANSOM_HOME", str(DATA.parents[1]))
    monkeypatch.delenv("TRANSOM_LANDING", raising=False)
    drafted = draft([read_sample(log_of(name))], name)
    _, events, refused = RECORD_EXAMPLES[name]
    assert (drafted.trial.events.num_rows, drafted.trial.rejected) == (events, refused)
    before = dict(settings(yaml.safe_load(drafted.text)))
    after = dict(settings(yaml.safe_load(stream_file(name).read_text())))
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert len(changed) <= EDITS, changed
    assert load(stream_file(name)).name == name
