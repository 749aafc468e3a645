"""Recipients and silences of a stream file: what is refused, and what the page about them shows."""

import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.alert_lake import alert_stream
from tests.support.stream_factories import changed, refusal
from transom.cli.check import warnings
from transom.stream import parse

PAGE = Path(__file__).parents[2] / "docs/how-to/alerts.md"
OPS = {"notifier": "tests.support.file_notifier.FileNotifier"}
SILENCE = {"kind": "alert", "who": "ann", "why": "known", "until": "2026-12-31"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"notify": {"ops": {}}}, "notify.ops.notifier: is required"),
        ({"notify": {"ops": {"notifier": "Slack"}}}, "notify.ops.notifier: "),
        ({"notify": {"ops": {"notifier": "a.b; import os"}}}, "notify.ops.notifier: "),
        ({"notify": {"page": OPS}}, "notify.page: every stream has this recipient; choose another name"),
        ({"notify": {"Ops": OPS}}, "notify.Ops: "),
        ({"notify": {"ops": {**OPS, "url": "x"}}}, "notify.ops: unknown field 'url'"),
        ({"notify": {"ops": {**OPS, "minimum": "worst"}}}, "notify.ops.minimum: "),
        ({"notify": {"ops": {**OPS, "at_most": 0}}}, "notify.ops.at_most: "),
        (
            {"notify": {"ops": {**OPS, "minimum": "low", "severity": ["low"]}}},
            "notify.ops.minimum: cannot be given with severity",
        ),
        ({"silence": [{**SILENCE, "until": ...}]}, "silence[0].until: is required"),
        ({"silence": [{**SILENCE, "who": ...}]}, "silence[0].who: is required"),
        ({"silence": [{**SILENCE, "why": ""}]}, "silence[0].why: "),
        ({"silence": [{**SILENCE, "kind": ...}]}, "silence[0]: must have at least one of key"),
        ({"silence": [{**SILENCE, "block": "lod"}]}, "silence[0].block: no block 'lod'; nearest: load"),
        *(
            ({"silence": [{**SILENCE, "until": until}]}, f"must be a date such as 2026-11-27; got {until!r}")
            for until in ("2026-02-30", "tomorrow", "2026-11-27T10:00", 20261127, "20261127")
        ),
    ],
)  # fmt: skip
def test_wrong_recipient_or_silence_is_refused(changes: Any, message: str) -> None:
    silences = [{k: v for k, v in of.items() if v is not ...} for of in changes.get("silence", ())]
    assert message in refusal(changed(**{**changes, "silence": silences}))


def test_recipients_and_silences_are_parsed() -> None:
    stream = parse(
        changed(notify={"ops": {**OPS, "summary_after": "3 days"}}, silence=[{**SILENCE, "block": "events"}])
    )
    assert stream.notify["ops"].summary_after == timedelta(days=3)
    assert stream.silence[0].until == date(2026, 12, 31)


def test_blocks_of_the_page_are_valid() -> None:
    texts = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    shown = [yaml.load(text, yaml.BaseLoader) for text in texts]
    stream = alert_stream(**shown[0], **shown[1])
    assert {*stream.notify} == {"ops", "security"}
    assert len(stream.silence) == 1


def test_check_warns_of_kinds_that_no_finding_has() -> None:
    recipient = {**OPS, "kinds": ["incomplete", "episodes"]}
    stream = alert_stream(notify={"ops": recipient}, silence=[{**SILENCE, "kind": "frames"}])
    assert list(warnings(stream)) == [
        "notify.ops.kinds[1]: no kind 'episodes'; nearest: episode",
        "silence[0].kind: no kind 'frames'; nearest: frame",
    ]


def test_check_warns_of_a_path_that_is_no_notifier() -> None:
    good = alert_stream(notify={"ops": OPS})
    assert not [text for text in warnings(good) if text.startswith("notify")]
    (text,) = (
        t for t in warnings(alert_stream(notify={"ops": {"notifier": "no_such.N"}})) if t.startswith("notify")
    )
    assert text.startswith(
        "notify.ops.notifier: must be the path of a notifier class of Airflow; got 'no_such.N'"
    )
