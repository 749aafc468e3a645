"""The Spark session of a job, created when a stage first has work.

An hour with nothing to do needs none.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from pyspark.sql import SparkSession

from transom.core.locations import spark_server


class SessionOnDemand:
    """A session that is created when it is first needed.

    Args:
        create: creates the session.
        create_second: creates a second session, with its own settings; None if the first one is divided.
        ahead: whether `expect` creates the session.

    Attributes:
        second: the session that `create_second` creates; None without it.
        seconds: how long callers of `get` have waited for its creation.
    """

    def __init__(
        self,
        create: Callable[[], SparkSession],
        create_second: Callable[[], SparkSession] | None = None,
        ahead: bool = False,
    ) -> None:
        self.seconds = 0.0
        self.second = None if create_second is None else SessionOnDemand(create_second)
        self._create, self._ahead = create, ahead
        self._session: SparkSession | None = None
        self._lock = threading.Lock()

    def get(self) -> SparkSession:
        """Return the session; create it if it does not exist."""
        start = time.monotonic()
        session = self._created()
        self.seconds += time.monotonic() - start
        return session

    def expect(self) -> None:
        """Create the session in the background, if later stages will need it."""
        if self._ahead and self._session is None:
            threading.Thread(target=self._create_ahead, daemon=True).start()

    @property
    def existing(self) -> SparkSession | None:
        """The session, if it exists."""
        return self._session

    def stop(self) -> None:
        """Stop the session if it exists, and the second one."""
        with self._lock:
            if self._session is not None:
                self._session.stop()
        if self.second is not None:
            self.second.stop()

    def _created(self) -> SparkSession:
        with self._lock:
            if self._session is None:
                self._session = self._create()
            return self._session

    def _create_ahead(self) -> None:
        # A stage that needs the session tries again, and raises the error.
        with suppress(Exception):
            self._created()


AnySession = SparkSession | SessionOnDemand


def session_of(spark: AnySession) -> SparkSession:
    """Return a session; create it if it is on demand and does not exist."""
    return spark.get() if isinstance(spark, SessionOnDemand) else spark


def second_session(spark: AnySession) -> SessionOnDemand | None:
    """Return a second session, with its own settings; None if there is none.

    A session of a server cannot be divided, so its second one is that of `create_second`.
    """
    if spark_server() is None:
        return SessionOnDemand(lambda: session_of(spark).newSession())
    return spark.second if isinstance(spark, SessionOnDemand) else None


def cancel_jobs(spark: AnySession) -> None:
    """Cancel all running jobs of a session's application; none if the session does not exist."""
    existing = spark.existing if isinstance(spark, SessionOnDemand) else spark
    if existing is None:
        return
    if spark_server() is None:
        existing.sparkContext.cancelAllJobs()
    else:
        existing.interruptAll()
