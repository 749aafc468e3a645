"""The example stream files find their target, and not what only resembles it."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pytest

from tests.support.stream_harness import StreamHarness, hour

EXAMPLES = Path(__file__).parents[2] / "schemas/examples"
Lines = Iterator[tuple[str, str]]
"""Lines, each with its file."""


def moment(at: float) -> str:
    return (hour(0) + timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%SZ")


def file(form: str, at: float) -> str:
    return (hour(0) + timedelta(seconds=at)).strftime(form)


def logins() -> Lines:
    """Return ten failures in three quarters of an hour, and a success; then sequences that differ in one way
    each.
    """
    for user, failures, then, reset in (
        ("ann", 10, 1500, False), ("bob", 10, 1500, True), ("cid", 10, 1801, False), ("dee", 9, 1500, False),
        ("eve", 10, 1500, False),
    ):  # fmt: skip
        output = [(300 * number, "failure") for number in range(failures)]
        output += [(output[-1][0] + 60, "reset")] * reset + [(output[-1][0] + then, "success")]
        for at, what in output:
            host = "10.0.0.8" if user == "eve" and what == "success" else "10.0.0.7"
            record = {"at": moment(at), "user": user, "host": host, "what": what}
            yield file("landing/logins/%Y-%m-%d/auth.%H.jsonl", at), json.dumps(record)


def scans() -> Lines:
    """Return twenty ports in ten minutes, and hours later a long connection; then less than that."""
    for host, ports, separate, then, stayed in (
        ("10.0.0.1", 20, 30, 5, 4000), ("10.0.0.2", 19, 30, 5, 4000), ("10.0.0.3", 20, 60, 5, 4000),
        ("10.0.0.4", 20, 30, 5, 60), ("10.0.0.5", 20, 30, 13, 4000),
    ):  # fmt: skip
        ends = [(separate * number, 0, "REJ", number % ports) for number in range(20)]
        for at, duration, state, port in [*ends, (then * 3600, stayed, "SF", 22)]:
            record = {
                "ts": hour(0).timestamp() + at - duration, "duration": duration, "conn_state": state,
                "id.orig_h": host, "id.resp_h": "10.0.1.1", "id.resp_p": port, "uid": f"{host} {at}",
            }  # fmt: skip
            yield file("landing/scans/%Y-%m-%d/conn.%H.log", at), json.dumps(record)


def shells() -> Lines:
    """Return a shell whose calls are hours apart, among others; then one whose output goes elsewhere."""
    for host, out in (("alpha", 5), ("beta", 6)):
        for _ in range(10_000):
            yield file(f"landing/shells/{host}/%Y-%m-%dT%H.trace", 0), "read fd=5 => 1"
        calls = ["accept fd=3 => 5", "dup fd=5 => 2", "dup fd=5 => 0", f"dup fd={out} => 1", "execve => 0"]
        for number, call in enumerate(calls):
            yield file(f"landing/shells/{host}/%Y-%m-%dT%H.trace", 7 * 3600 * number), call


def consoles() -> Lines:
    """Return a change of a policy nine hours after a login; then changes by one with a second factor, one
    without password, and one from elsewhere.
    """
    for user, factor, outcome in (
        ("ann", "No", "Success"), ("bob", "Yes", "Success"), ("cid", "No", "Failure"),
        ("dee", "No", "Success"),
    ):  # fmt: skip
        for at, name in ((600, "ConsoleLogin"), (1200, "ListUsers"), (9 * 3600, "PutUserPolicy")):
            record = {
                "eventTime": moment(at), "eventName": name,
                "sourceIPAddress": "192.0.2.2" if user == "dee" and at > 3600 else "192.0.2.1",
                "userIdentity": {"arn": f"arn:aws:iam::1:user/{user}"},
                "additionalEventData": {"MFAUsed": factor} if name == "ConsoleLogin" else {},
                "responseElements": {"ConsoleLogin": outcome} if name == "ConsoleLogin" else {},
            }  # fmt: skip
            yield (
                file(f"landing/consoles/%Y-%m-%d/trail.%H.{user}.{at}.json", at),
                json.dumps({"Records": [record]}),
            )


FOUND = {
    logins: "ann was let in after ten failures",
    scans: "10.0.0.1 tried the ports of 10.0.1.1, and then stayed",
    shells: "A shell of alpha was handed to a connection",
    consoles: "arn:aws:iam::1:user/ann changed a policy after a login without a second factor",
}


@pytest.mark.parametrize("of", FOUND)
def test_example_finds_its_target(
    make_stream: Callable[..., StreamHarness], tmp_path: Path, of: Callable[[], Lines]
) -> None:
    for name, some in groupby(sorted(of(), key=itemgetter(0)), key=itemgetter(0)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{text}\n" for _, text in some))
    example = make_stream((EXAMPLES / f"{of.__name__}.yaml").read_text())
    example.run(0, 72)
    assert [finding.title for finding in example.findings() if finding.kind == "episode"] == [
        f"{example.stream.name}: {FOUND[of]}"
    ]


def test_every_example_is_tried() -> None:
    assert {path.stem for path in EXAMPLES.iterdir()} == {of.__name__ for of in FOUND}
