"""What must hold of files, and of the hours that they make."""

from dataclasses import replace

from transom.engine.check_builders import built_in, declared
from transom.features.ingest.key_checks import key_checks
from transom.ledger.check import Check
from transom.spec.stream import Stream

SCATTERED, CAPTURES = "hours_bounded", "captures_filled"
OF_SCHEDULE = ("files_expected", "periods_covered")
"""Checks that no file may fail outside of the stream's schedule."""


def file_checks(stream: Stream) -> tuple[Check, ...]:
    """The checks of one file."""
    return (
        *built_in(stream, "lines_accounted", metric="unaccounted", at_least=0, at_most=0),
        *built_in(stream, "rejected_share", metric="rejected_share"),
        *(
            replace(check, severity="warning")
            for check in built_in(stream, "rejected_share", metric="rejected_share_of_few")
        ),
        *built_in(stream, "no_nul_bytes", metric="nul_bytes", at_most=0),
        *built_in(stream, SCATTERED, metric="hours"),
        *(built_in(stream, CAPTURES, metric=CAPTURES, at_most=0) if stream.captures else ()),
        *key_checks(stream),
        *built_in(stream, "times_inside_hour", metric="seconds_outside", at_most=0),
        *built_in(stream, "file_readable", metric="broken", at_most=0),
        *(
            built_in(stream, "times_unambiguous", metric="ambiguous", at_most=0)
            if stream.time is not None and stream.time.is_local
            else ()
        ),
        *(
            built_in(stream, "fields_known", metric="fields_known", at_most=0)
            if stream.extra_fields == "drop"
            else ()
        ),
        *built_in(stream, "fields_present", metric="fields_present", at_most=0),
        *built_in(stream, "used_fields_present", metric="used_fields_present", at_most=0),
        *(rule.check for rule in declared(stream, "ingest")),
    )


def hour_checks(stream: Stream) -> tuple[Check, ...]:
    """The checks of an hour, beside those of its files."""
    expected = stream.source.expected_files
    return (
        *(built_in(stream, "files_expected", metric="files", at_least=expected) if expected else ()),
        *(
            built_in(stream, "periods_covered", metric="uncovered", at_most=0)
            if stream.source.periods_checked
            else ()
        ),
        *built_in(stream, "files_unchanged", metric="conflicts", at_most=0),
        *(
            built_in(stream, "files_distinct", metric="equal", at_most=0)
            if stream.source.equal_files == "keep"
            else ()
        ),
    )
