"""Sessions of a Spark Connect server that already runs, instead of a JVM for each job.

The server's Python workers import this package from the server's own path. So a new session first compares
the code there with the job's.
"""

import hashlib
import re
import socket
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from transom.core.locations import PACKAGE, without_parameters
from transom.storage.tables import LakeError, one_line_message

REMOTE = "SPARK_REMOTE"
"""The environment variable with the URL of a server."""
EXTENSIONS = "spark.sql.extensions"
"""The required setting that no session can set."""
READY, BEFORE = "transom.ready", "transom.before."
"""Settings of a session: that it is checked, and the server's values of settings that jobs change."""
SECONDS = 10
"""How long a server may take to accept a connection."""
RETRIES = 4
"""How often a call is repeated, over six seconds: a server that starts again has lost the session anyway."""
SIGNS = ("RETRIES_EXCEEDED", "StatusCode.UNAVAILABLE", "INVALID_HANDLE", "server side session identifier")
"""Parts of messages of a server that has ended, or has started again. These errors have no common class."""
REMEDY = "`make spark` starts one, and docs/how-to/warm-server.md lists its settings"


class ServerError(LakeError):
    """A Spark Connect server cannot be used. The message is one line."""


@cache
def code_hash() -> str:
    """Return a hash of this package's modules, as they were at the first call."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(f"{file.relative_to(PACKAGE)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def connect(url: str, key: str, required: Mapping[str, str], changed: Collection[str]) -> SparkSession:
    """Return the session of a job on a server.

    Runs of a job with the same code share a session, and with it Python workers that have imported this code.
    It stays on the server. Jobs of other streams have their own sessions.

    Args:
        url: the URL of the server.
        key: what distinguishes the job from others, such as its stage, stream and lake.
        required: the settings that a session needs. The server must have those that a session cannot set.
        changed: the settings that a job changes for some of its queries. They are set back here, as the last
            job may have been killed.

    Raises:
        ServerError: the URL is malformed, there is no server, it lacks Delta, or its workers have other code.
    """
    address = _reachable(url)
    # Without this import, errors of Delta have no class of their own.
    import delta.connect
    from pyspark.sql.connect.client.retries import DefaultPolicy

    assert delta.connect
    number = uuid.uuid5(uuid.NAMESPACE_URL, f"{key} {code_hash()}")
    base, _, parameters = url.partition("/;")
    named = ";".join(filter(None, [f"{base.rstrip('/')}/", parameters, f"session_id={number}"]))
    spark: SparkSession = SparkSession.builder.remote(named).create()
    # By default, a call is repeated for ten minutes, and `stop` ends the session for the next job.
    spark.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES)])
    spark.release_session_on_close = False  # type: ignore[attr-defined]
    where = f"{REMOTE}: the server at {address}"
    try:
        if spark.conf.get(READY, None) is None:
            _prepare(spark, where, required)
            values = get_settings(spark, changed)
            set_settings(spark, {**{BEFORE + name: value for name, value in values.items()}, READY: "true"})
        before = get_settings(spark, [BEFORE + name for name in changed])
        set_settings(spark, dict(zip(changed, before.values(), strict=True)))
    except PySparkException as error:
        spark.stop()
        raise ServerError(f"{where} does not answer as one of Spark Connect: {_short(error)}") from error
    except ServerError:
        spark.stop()
        raise
    return spark


def get_settings(spark: SparkSession, names: Iterable[str]) -> dict[str, str]:
    """Return settings of a session on a server, by one request."""
    names = list(names)
    return dict(zip(names, (value or "" for value in spark.client.get_configs(*names)), strict=True))


def set_settings(spark: SparkSession, values: Mapping[str, str]) -> None:
    """Set settings of a session on a server, by one request."""
    spark.conf._set_all(dict(values), silent=False)  # type: ignore[attr-defined]


def is_lost(error: BaseException | None) -> bool:
    """Return whether an error means that the server of a session has ended, or has started again."""
    while error is not None:
        is_of_client = isinstance(error, PySparkException) or type(error).__module__.startswith("grpc")
        if is_of_client and any(sign in f"{error!r} {error}" for sign in SIGNS):
            return True
        error = error.__cause__ or error.__context__
    return False


def _reachable(url: str) -> str:
    """Return the address of a server, after a connection to it."""
    rule = f"{REMOTE}: must be the URL of a Spark Connect server, such as sc://127.0.0.1:15002"
    try:
        from pyspark.sql.connect.client.core import DefaultChannelBuilder
    except ImportError as error:
        raise ServerError(
            f"{REMOTE}: Spark's client is incomplete, {error}: install pyspark[connect]"
        ) from None
    try:
        address: str = DefaultChannelBuilder(url).endpoint
    except ValueError:
        raise ServerError(f"{rule}; got {without_parameters(url)!r}") from None
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), SECONDS).close()
    except OSError as error:
        reason = error.strerror or error
        raise ServerError(f"{REMOTE}: there is no server at {address}: {reason}; {REMEDY}") from None
    return address


def _prepare(spark: SparkSession, where: str, required: Mapping[str, str]) -> None:
    """Set the settings of a new session, and check that it runs jobs with the code of this process."""
    for name, value in required.items():
        if name != EXTENSIONS:
            spark.conf.set(name, value)
        elif value not in (spark.conf.get(name, None) or "").split(","):
            raise ServerError(f"{where} must be started with {name} {value}; {REMEDY}")
    try:
        versions = spark.range(0, 1, 1, 1).mapInArrow(_report_code, "code string").toArrow()
        # The catalog is Delta's class: this loads it.
        spark.catalog.currentDatabase()
    except PySparkException as error:
        if is_lost(error):
            raise
        raise ServerError(f"{where} does not run a job of transom: {_short(error)}; {REMEDY}") from error
    if versions.column(0).to_pylist() != [code_hash()]:
        raise ServerError(f"{where} runs another version of transom than this job; start it again")


def _report_code(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"code": [code_hash()]})


def _short(error: Exception) -> str:
    """Return the message of an error; of a worker's traceback, its last line."""
    text = str(error).rpartition("Traceback (most recent call last):\n")[2]
    lines = [line for line in text.splitlines() if line and not line.startswith(" ")]
    found = next(filter(re.compile(r"\w+(Error|Exception): ").match, lines), None)
    return found or one_line_message(error)
