"""Which messages are due, without tables."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from tests.support.alert_lake import EVERYTHING, START
from tests.support.ledger_factories import at
from transom.alerts.comparison import (
    THE_PAGE,
    Recipient,
    due,
    gone,
    grouped,
    key_of,
    old_before,
    silenced,
)
from transom.alerts.delivery import GONE, MAX_TEXT, Delivery, content_hash
from transom.alerts.message import MAX_REASON, MAX_TITLE, message_of
from transom.alerts.silences import is_silent
from transom.core.intervals import UNKNOWN_HOUR
from transom.findings.from_ledger import Finding, Severity
from transom.spec.notify import RecipientSpec, SilenceSpec

EPISODE = Finding(
    "patterns", at(1), "a", "episode", "busy", "low", "busy", at(0), at(2), False, (), "10.0.0.1",
    first_hour=at(0),
)  # fmt: skip
QUARANTINED = replace(EPISODE, stage="ingest", kind="check_failed", block="events", key=None, finding_id="q")


def row(finding: Finding = EPISODE, **changes: Any) -> Delivery:
    return replace(Delivery.raising("ops", finding, "web", "run", START), **changes)


def states(finding: Finding, last: Mapping[str, Delivery], recipient: Recipient = EVERYTHING) -> list[str]:
    return [delivery.state for delivery in due(recipient, [finding], last, row)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, []),
        ({}, {"severity": "high"}, ["updated"]),
        ({"ongoing": True}, {}, ["ended"]),
        ({"ongoing": True}, {"severity": "high"}, ["ended"]),
        ({"ongoing": True}, {"ongoing": True, "end_time": at(9)}, []),
        ({}, {"end_time": at(9)}, ["updated"]),
        ({}, {"ongoing": True}, ["updated"]),
        # Texts, and the hour that reported it last, are no news.
        ({}, {"title": "x", "evidence": ("y",), "hour": at(7), "exactness": "estimated"}, []),
    ],
)
def test_change_of_a_finding_has_a_state(before: Any, after: Any, expected: list[str]) -> None:
    assert states(replace(EPISODE, **after), {"a": row(replace(EPISODE, **before))}) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"ongoing": True}, {}, []),
        ({}, {"end_time": at(9)}, []),
        ({"severity": "medium"}, {}, ["updated"]),
    ],
)
def test_of_a_finding_from_the_ledger_only_the_severity_counts(
    before: Any, after: Any, expected: list[str]
) -> None:
    """It stays as long as its cause, so that it neither ends nor grows."""
    last = {"q": row(replace(QUARANTINED, **before))}
    assert states(replace(QUARANTINED, **after), last) == expected


def test_new_finding_is_raised_and_again_after_its_withdrawal() -> None:
    assert states(EPISODE, {}) == ["raised"]
    withdrawn = gone(row(sequence=4), "why", "run", START)
    assert (withdrawn.state, withdrawn.sequence, withdrawn.reason, withdrawn.hash) == (
        "withdrawn",
        5,
        "why",
        GONE,
    )
    (again,) = due(EVERYTHING, [EPISODE], {"a": withdrawn}, row)
    assert (again.state, again.sequence, again.reason, again.hash) == (
        "raised",
        6,
        None,
        content_hash(EPISODE),
    )


@pytest.mark.parametrize(
    ("muted", "ongoing", "is_silent", "severity", "expected"),
    [
        (True, True, False, "low", ["raised"]),
        (True, True, True, "low", []),
        (True, False, False, "low", []),
        # The recipient takes findings of low severity alone.
        (True, True, False, "high", []),
        (False, True, False, "high", ["updated"]),
        (False, True, True, "low", []),
    ],
)
def test_finding_whose_message_was_silenced_is_sent_if_it_goes_on_without_a_silence(
    muted: bool, ongoing: bool, is_silent: bool, severity: Severity, expected: list[str]
) -> None:
    finding = replace(EPISODE, ongoing=ongoing, severity=severity)
    before = row(finding, status="silenced", muted=muted)
    low = Recipient("ops", frozenset(["low"]))
    result = list(due(low, [finding], {"a": before}, row, lambda delivery: is_silent))
    assert [(of.state, of.sequence, of.muted) for of in result] == [(state, 2, False) for state in expected]


def test_cause_of_a_finding_from_the_ledger_ends() -> None:
    assert gone(row(QUARANTINED), "why", "run", START).state == "ended"


@pytest.mark.parametrize(
    ("spec", "severities"),
    [
        ({}, {"high", "medium", "low"}),
        ({"minimum": "medium"}, {"high", "medium"}),
        ({"severity": ["low"]}, {"low"}),
        ({"kinds": ["episode"]}, {"high", "medium", "low"}),
        ({"kinds": ["alert"]}, set()),
    ],
)
def test_recipient_is_raised_the_findings_that_it_takes(spec: Any, severities: set[str]) -> None:
    recipient = Recipient.of("ops", RecipientSpec.model_validate({"notifier": "a.b", **spec}))
    taken = {of for of in ("high", "medium", "low") if states(replace(EPISODE, severity=of), {}, recipient)}  # type: ignore[arg-type]
    assert taken == severities


def test_recipient_gets_every_later_message_about_a_finding_that_it_knows() -> None:
    recipient = Recipient.of("ops", RecipientSpec(notifier="a.b", minimum="high"))
    last = {"a": row(replace(EPISODE, severity="high"))}
    assert states(EPISODE, last, recipient) == ["updated"]


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ({"key": "10.0.0.1"}, True),
        ({"key": "10.0.0.1", "kind": "alert"}, False),
        ({"kind": "episode", "block": "busy"}, True),
        ({"block": "other"}, False),
        ({"key": "10.0.0.1", "until": date(2026, 11, 27)}, False),
    ],
)
def test_silence_matches_by_all_its_fields_until_its_day_begins(fields: Any, matches: bool) -> None:
    silence = SilenceSpec.model_validate({"who": "o", "why": "r", "until": "2026-11-28", **fields})
    assert is_silent(row(), [silence], START) == matches
    assert (silenced(row(), matches).status == "silenced") == matches


def names(rows: list[Delivery]) -> list[list[str]]:
    messages: dict[str, list[str]] = {}
    for of in rows:
        messages.setdefault(of.message, []).append(of.finding_id)
    return list(messages.values())


def test_findings_of_a_key_share_a_message_of_their_state() -> None:
    rows = [
        row(finding_id="a"),
        row(finding_id="b"),
        row(finding_id="c", state="ended"),
        row(finding_id="d", key=None, item="10.0.0.1"),
        row(finding_id="e", key=None),
        row(finding_id="f", key=None),
    ]
    assert names(grouped(EVERYTHING, rows, at(0))) == [["a", "b"], ["c"], ["d"], ["e"], ["f"]]


def test_old_findings_are_one_summary_and_files_without_an_hour_are_not_old() -> None:
    unknown = row(last_hour=UNKNOWN_HOUR, end_time=None, finding_id="u")
    rows = [
        row(finding_id="a"),
        row(finding_id="b", key="other"),
        row(finding_id="c", end_time=at(60)),
        unknown,
    ]
    result = grouped(EVERYTHING, rows, old_before(EVERYTHING, at(52)))
    assert names(result) == [["a", "b"], ["c", "u"]]
    assert [of.summary for of in result] == [True, True, False, False]
    # Forty-eight hours before the last one.
    assert not any(of.summary for of in grouped(EVERYTHING, rows, old_before(EVERYTHING, at(50))))
    assert not any(of.summary for of in grouped(EVERYTHING, rows, old_before(EVERYTHING, None)))
    assert old_before(THE_PAGE, at(52)) is None


def test_too_many_messages_are_one_summary() -> None:
    rows = [row(finding_id=str(number), key=str(number)) for number in range(21)]
    assert len(names(grouped(EVERYTHING, rows, at(0)))) == 1
    assert len(names(grouped(EVERYTHING, rows[:20], at(0)))) == 20
    assert len(names(grouped(THE_PAGE, rows, None))) == 21


def test_key_of_a_message_depends_on_what_it_says_and_not_on_order_or_time() -> None:
    rows = [row(finding_id="a"), row(finding_id="b")]
    same = [
        row(finding_id="b", run_id="x", time=START + timedelta(days=1)),
        row(finding_id="a", status="failed"),
    ]
    assert key_of(rows) == key_of(same)
    for changes in ({"state": "ended"}, {"hash": "x"}, {"sequence": 2}, {"recipient": "x"}):
        assert key_of([rows[0], replace(rows[1], **changes)]) != key_of(rows)  # type: ignore[arg-type]


def test_messages_of_long_texts_are_short_enough_for_receivers() -> None:
    long = row(replace(EPISODE, title="t" * 2000, key="k" * 2000), reason="r" * 2000)
    alone, many = message_of([long]), message_of([long] * 30)
    assert len(alone["title"]) == len(many["title"]) == MAX_TITLE
    assert alone["text"].endswith("t…; " + "r" * (MAX_REASON - 1) + "…")
    assert len(many["text"]) < 40_000


def test_texts_of_a_log_are_cut_and_have_no_control_characters() -> None:
    hostile = row(replace(EPISODE, title="\u202e<b>\x1b[31m" + "x" * 100_000, key="k" * 100_000))
    assert len(hostile.title) == MAX_TEXT
    assert hostile.title.startswith("\\u202e<b>\\x1b[31mxxx")
    assert hostile.title.endswith("x…")
    assert len(hostile.key or "") == MAX_TEXT
