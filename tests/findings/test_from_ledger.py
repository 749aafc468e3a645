"""The problems in a ledger, with one finding for each cause."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.ledger_factories import (
    GOOD,
    PARTIAL,
    WITHHELD,
    as_lines,
    at,
    files,
    junk,
    lacking,
    node,
    of_ingest,
    snapshot,
    waiting,
)
from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.core.reasons import Reason
from transom.features.registry import BUILT_IN
from transom.findings.from_ledger import Finding, from_ledger, identity
from transom.ledger.chain import blocking_reason
from transom.ledger.snapshot import LedgerSnapshot


def test_consecutive_hours_with_one_cause_are_one_finding() -> None:
    result = of_ingest(
        snapshot({0: GOOD, 1: WITHHELD, 2: WITHHELD, 3: GOOD, 4: WITHHELD}),
        [junk(1), junk(2, ".a"), junk(2, ".b"), junk(4)],
    )
    first = Finding(
        stage="ingest",
        hour=at(2),
        finding_id=identity("web", "ingest", "check_failed", "events", "rejected_share", at(1)),
        kind="check_failed",
        block="events",
        severity="high",
        title="web: events, 2015-05-17T01:00 to 2015-05-17T03:00 (2 hours), are quarantined: "
        "check rejected_share saw 0.3333, expected at most 0.05",
        start_time=at(1),
        end_time=at(3),
        ongoing=False,
        evidence=(
            f"the rule: {BUILT_IN['rejected_share'].meaning}",
            "2015-05-17T01:00 landing/01.log: observed 0.3333333333333333, expected at most 0.05",
            "2015-05-17T02:00 landing/02.a.log: observed 0.3333333333333333, expected at most 0.05",
            "2015-05-17T02:00 landing/02.b.log: observed 0.3333333333333333, expected at most 0.05",
            "line 1: no_match: junk",
            "line 2: no_match: junk",
            "to fix it: fix the data, or accept the value in the stream file, then run ingest "
            "from 2015-05-17T01:00 to 2015-05-17T03:00",
        ),
        first_hour=at(1),
    )
    assert result[0] == first
    assert [(f.start_time, f.end_time, f.ongoing) for f in result] == [
        (at(1), at(3), False),
        (at(4), at(5), True),
    ]
    assert as_lines(result)[1] == (
        "high check_failed: web: events, 2015-05-17T04:00, are quarantined: "
        "check rejected_share saw 0.3333, expected at most 0.05"
    )


@pytest.mark.parametrize(
    ("observed", "text"),
    [
        (26185, "26185"), (2**40, "1099511627776"), (-12345.0, "-12345"), (12345.678, "12345.7"),
        (0.25, "0.25"), (2 / 3, "0.6667"), (1e300, "1e+300"), (None, "nothing"),
    ],
)  # fmt: skip
def test_whole_numbers_have_no_decimals_in_a_title(observed: float | None, text: str) -> None:
    (result,) = of_ingest(snapshot({1: WITHHELD}), [replace(junk(1), observed=observed)])
    assert result.title.partition(": check ")[2] == f"rejected_share saw {text}, expected at most 0.05"


def test_evidence_is_at_most_a_page_long() -> None:
    (result,) = of_ingest(snapshot(dict.fromkeys(range(9), WITHHELD)), [junk(number) for number in range(9)])
    assert len(result.evidence) == 1 + 5 + 1 + 5 + 1
    assert result.evidence[6] == "and 4 more"


def test_silent_source_is_worse_than_one_that_was_silent() -> None:
    empty = dict.fromkeys((1, 2, 4, 5, 6), PARTIAL)
    result = of_ingest(
        snapshot({0: GOOD, 3: GOOD, 7: PARTIAL} | empty), [*(files(n, 0, 2) for n in empty), files(7, 1, 2)]
    )
    assert as_lines(result) == [
        "medium source_silent: no file of web for 2015-05-17T01:00 to 2015-05-17T03:00 (2 hours)",
        "medium source_silent: no file of web for 2015-05-17T04:00 to 2015-05-17T07:00 (3 hours)",
        "medium incomplete: web: events, 2015-05-17T07:00, are incomplete: "
        "check files_expected saw 1, expected at least 2",
    ]
    removed = of_ingest(snapshot({0: GOOD, 3: GOOD} | empty), [files(n, 0) for n in empty])
    assert as_lines(removed) == [
        "high source_silent: no file of web since 2015-05-17T04:00 (3 hours)",
        "medium source_silent: no file of web for 2015-05-17T01:00 to 2015-05-17T03:00 (2 hours)",
    ]
    assert {f.finding_id for f in result if f.kind == "source_silent"} == {f.finding_id for f in removed}


def test_warning_has_low_severity_and_warning_source_raises_no_alarm() -> None:
    result = of_ingest(
        snapshot({0: GOOD, 1: GOOD}),
        [replace(verdict, severity="warning") for verdict in (junk(0), files(1, 0))],
    )
    assert as_lines(result) == [
        "low check_failed: web: events, 2015-05-17T00:00, deserve a look: "
        "check rejected_share saw 0.3333, expected at most 0.05",
        "low source_silent: no file of web since 2015-05-17T01:00 (1 hour)",
    ]


def test_file_with_events_of_other_hours_is_one_finding() -> None:
    cut = CheckResult(node(1), "file_readable", "incomplete", 1, "at most 0", False, file="a/1.log")
    missing = lacking(Reason("file", "a/1.log: file_readable: truncated: after 5 lines", "a/1.log"))
    (result,) = of_ingest(snapshot({1: missing, 2: missing, 3: missing}), [cut])
    assert (result.kind, result.start_time, result.end_time) == ("incomplete", at(1), at(4))
    assert result.evidence[1:3] == (
        "2015-05-17T01:00 a/1.log: observed 1, expected at most 0",
        "a/1.log: file_readable: truncated: after 5 lines",
    )


def test_hours_that_lack_a_quarantined_file_name_it_and_its_fix() -> None:
    texts = "a/1.log: quarantined, see the finding of 2015-05-17T01:00"
    missing = lacking(Reason("quarantined_file", texts, "a/1.log"))
    quarantined, result = of_ingest(snapshot({1: WITHHELD, 2: missing, 3: missing}), [junk(1)])
    assert quarantined.kind == "check_failed"
    assert (result.kind, result.title, result.evidence) == (
        "incomplete",
        "web: events, 2015-05-17T02:00 to 2015-05-17T04:00 (2 hours), are incomplete: "
        "a/1.log: quarantined, see the finding of 2015-05-17T01:00",
        (
            "a/1.log: quarantined, see the finding of 2015-05-17T01:00",
            "to fix it: fix the cause in that finding, so that a/1.log is published, then run ingest "
            "from 2015-05-17T02:00 to 2015-05-17T04:00",
        ),
    )


def test_waiting_files_are_one_finding_that_names_the_run_to_read_them() -> None:
    def waiting(number: int) -> PartitionState:
        texts = (
            f"landing/a b.{number}.log: came later than `repair_window`; run 2015-05-17T0{number}:00 "
            f"again to take it"
        )
        check = "files_expected: observed 1, expected at least 2"
        path = f"landing/a b.{number}.log"
        return lacking(Reason("file", texts, path), Reason("check", check, "files_expected"))

    result = of_ingest(snapshot({1: waiting(1), 2: waiting(2)}), [files(1, 1, 2), files(2, 1, 2)])
    assert sorted(as_lines(result)) == [
        "medium incomplete: web: events, 2015-05-17T01:00 to 2015-05-17T03:00 (2 hours), are incomplete: "
        "check files_expected saw 1, expected at least 2",
        "medium incomplete: web: events, 2015-05-17T01:00 to 2015-05-17T03:00 (2 hours), are incomplete: "
        "landing/a b.1.log: came later than `repair_window`; run 2015-05-17T01:00 again to take it",
    ]


def test_hour_not_requested_gives_no_finding() -> None:
    unasked = replace(PARTIAL, requested=False)
    assert of_ingest(snapshot({0: unasked, 1: GOOD}), [files(0, 0)]) == []
    assert of_ingest(snapshot({0: replace(unasked, reason="a/1.log: cut"), 1: GOOD})) == []
    assert len(of_ingest(snapshot({0: replace(WITHHELD, requested=False), 1: GOOD}), [junk(0)])) == 1


def test_checks_of_a_killed_run_do_not_count() -> None:
    writing = replace(WITHHELD, status="writing")
    assert of_ingest(snapshot({0: writing, 1: GOOD}), [junk(0)]) == []
    (result,) = of_ingest(snapshot({0: writing, 1: GOOD}), [junk(0)], [node(0)])
    assert (result.kind, result.start_time, result.end_time) == ("stale", at(0), at(1))


def test_file_without_an_hour_is_a_finding_of_every_hour() -> None:
    where = PartitionKey("ingest", "events", "events", UNKNOWN_HOUR)
    quarantined = replace(WITHHELD, reason="landing/junk.log: rejected_share: observed 1", requested=False)
    (result,) = of_ingest(LedgerSnapshot({where: quarantined, node(5): GOOD}))
    assert (result.hour, result.start_time, result.end_time, result.ongoing) == (
        UNKNOWN_HOUR,
        None,
        None,
        True,
    )
    assert str(result) == (
        "high check_failed: web: events, files without an hour, are quarantined: "
        "landing/junk.log: rejected_share: observed 1"
    )
    assert result.evidence[-1].endswith("then run ingest over any hours")
    partial = replace(quarantined, status="published")
    assert [(f.kind, f.start_time) for f in of_ingest(LedgerSnapshot({where: partial, node(5): GOOD}))] == [
        ("incomplete", None)
    ]


def test_finding_of_consecutive_hours_shows_the_worst() -> None:
    warned = replace(junk(1), severity="warning", observed=0.06)
    (result,) = of_ingest(snapshot({1: GOOD, 2: WITHHELD}), [warned, junk(2)])
    assert (result.severity, result.start_time, result.end_time) == ("high", at(1), at(3))
    assert "are quarantined: check rejected_share saw 0.3333" in result.title


def test_quarantined_incomplete_hour_is_two_findings() -> None:
    result = of_ingest(
        snapshot({1: replace(WITHHELD, reason="a/1.log: cannot be read"), 2: GOOD}), [files(1, 1, 2)]
    )
    assert as_lines(result) == [
        "high check_failed: web: events, 2015-05-17T01:00, are quarantined: a/1.log: cannot be read",
        "medium incomplete: web: events, 2015-05-17T01:00, are incomplete: "
        "check files_expected saw 1, expected at least 2",
    ]


def test_row_at_fault_is_shown_within_one_line() -> None:
    (result,) = of_ingest(snapshot({1: WITHHELD}), [junk(1).with_failing_rows(["x" * 300])])
    assert [row for row in result.evidence if row.startswith("x")] == ["x" * 200]


def aggregated(entries: Mapping[str, PartitionState], ingest: PartitionState = GOOD) -> LedgerSnapshot:
    own = {node(2, block, "aggregates", "aggregates"): entry for block, entry in entries.items()}
    return LedgerSnapshot({node(1): ingest, node(2): GOOD} | own)


def test_hours_blocked_by_a_quarantined_one_have_no_findings_of_their_own() -> None:
    waits = waiting(blocking_reason(node(1), WITHHELD))
    assert waits.reason == "ingest events 2015-05-17T01:00 is quarantined: checks say so"
    # The text does not matter: the first hour may be quarantined for another reason by now, or be damaged.
    text = Reason("waits", "it waits", node(1).key)
    for root in (WITHHELD, replace(WITHHELD, status="damaged")):
        both = aggregated({"site": waits, "traffic": waiting(text)}, root)
        assert from_ledger("web", "aggregates", both, []) == []
        assert from_ledger("web", "aggregates", both, [], [n for n in both if n.stage == "aggregates"]) == []
    # An hour with the same text as another quarantined hour waits for something else.
    other = replace(waits, reasons=(Reason("waits", str(waits.reason), node(0).key),))
    (result,) = from_ledger("web", "aggregates", aggregated({"site": other}, WITHHELD), [])
    assert result.kind == "check_failed"
    inherits = lacking(Reason("inputs", "1 incomplete hours, first 2015-05-17T01:00"))
    assert from_ledger("web", "aggregates", aggregated({"site": inherits}, PARTIAL), []) == []


def test_hours_blocked_by_other_causes_are_one_finding() -> None:
    waits = waiting(blocking_reason(node(1), replace(WITHHELD, status="writing", reason=None)))
    both = aggregated({"site": waits, "traffic": waits}, replace(WITHHELD, status="writing"))
    (result,) = from_ledger("web", "aggregates", both, [], noun="figures")
    assert str(result) == (
        "high check_failed: web: figures, 2015-05-17T02:00, could not be computed: "
        "ingest events 2015-05-17T01:00 is writing"
    )
    # Its obstacle was removed by a run that was too far away to compute it.
    mended = aggregated({"site": waits, "traffic": waits})
    (result,) = from_ledger("web", "aggregates", mended, [], [n for n in mended if n.stage == "aggregates"])
    assert (result.kind, result.evidence[:2]) == ("stale", ("block site", "block traffic"))


def test_stale_hours_of_any_blocks_are_one_finding() -> None:
    hours = LedgerSnapshot(
        {
            node(number, block, "aggregates", of): GOOD
            for number in range(4)
            for block in ("site", "traffic")
            for of in ("granules", "aggregates")
        }
    )
    remaining = [n for n in hours if n.hour in (at(0), at(1)) and (n.block == "site" or n.hour == at(1))]
    (result,) = from_ledger("web", "aggregates", hours, [], remaining, noun="figures")
    assert result == Finding(
        stage="aggregates",
        hour=at(1),
        finding_id=identity("web", "aggregates", "stale", None, "", at(0)),
        kind="stale",
        block=None,
        severity="medium",
        title="web: figures, 2015-05-17T00:00 to 2015-05-17T02:00 (2 hours), are out of date: "
        "what they are computed from has changed since, a gate kept runs from them, or one was killed",
        start_time=at(0),
        end_time=at(2),
        ongoing=False,
        evidence=(
            "block site",
            "block traffic",
            "to fix it: run aggregates from 2015-05-17T00:00 to 2015-05-17T02:00",
        ),
        first_hour=at(0),
    )
    # A new block has no row there yet; quarantined hours have findings of their own.
    (new,) = from_ledger("web", "aggregates", hours, [], [node(0, "new", "aggregates")])
    assert new.evidence[0] == "block new"
    quarantined = hours.updated({remaining[0]: WITHHELD})
    assert [f.kind for f in from_ledger("web", "aggregates", quarantined, [], [remaining[0]])] == [
        "check_failed"
    ]


@given(
    st.dictionaries(st.integers(0, 30), st.sampled_from(["junk", "few", "none", "both", "ok"])), st.randoms()
)
def test_findings_do_not_depend_on_the_order_of_the_ledger(hours: dict[int, str], rng: Random) -> None:
    failures = [junk(n) for n, says in hours.items() if says in ("junk", "both")]
    failures += [files(n, says != "none", 2) for n, says in hours.items() if says in ("few", "none", "both")]
    status = {"junk": WITHHELD, "both": WITHHELD, "ok": GOOD}
    entries = [(node(n), status.get(says, PARTIAL)) for n, says in hours.items()]
    result = of_ingest(LedgerSnapshot(dict(entries)), failures)
    rng.shuffle(entries)
    rng.shuffle(failures)
    in_order = sorted(failures, key=lambda v: (v.partition, v.check, v.file or ""))
    assert of_ingest(LedgerSnapshot(dict(entries)), in_order) == result
    assert len({finding.finding_id for finding in result}) == len(result)
    # Each hour with a problem is in one finding of its kind, and no other hour is.
    kinds = {
        "junk": {"check_failed"},
        "few": {"incomplete"},
        "none": {"source_silent"},
        "both": {"check_failed", "incomplete"},
    }
    for n in range(31):
        covering = [
            f.kind
            for f in result
            if f.start_time is not None and f.start_time <= at(n) < (f.end_time or at(n))
        ]
        assert sorted(covering) == sorted(kinds.get(hours.get(n, "ok"), set()))
    # Two findings of a cause do not touch.
    for kind in ("check_failed", "incomplete", "source_silent"):
        ends = [(f.start_time, f.end_time) for f in result if f.kind == kind]
        assert not {end for _, end in ends} & {start for start, _ in ends}
