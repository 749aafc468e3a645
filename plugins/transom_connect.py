"""Submission of a job to a Spark Connect server, if the connection's host is its URL, `sc://host:port`.

The provider's spark-submit knows no such server. Its hook for pipelines knows one: it runs a Python client
with the URL in `SPARK_REMOTE`. This hook does the same for a job: no Java starts.
"""

import sys
from typing import Any

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

SCHEME = "sc://"
REMOTE = "SPARK_REMOTE"


class ConnectHook(SparkSubmitHook):
    """Runs a job's script in Python, against the server of a connection."""

    def _resolve_connection(self) -> dict[str, Any]:
        # An empty master matches none of the provider's cluster managers.
        return {**super()._resolve_connection(), "master": "", "spark_binary": sys.executable}

    def _build_spark_submit_command(self, application: str) -> list[str]:
        variables: dict[str, str] = self._env_vars or {}
        url = SparkConnectHook(self._conn_id).get_connection_url().removesuffix("/")
        self._env = {**variables, REMOTE: url}
        python = variables.get("PYSPARK_PYTHON", sys.executable)
        command = [python, application, *(self._application_args or ())]
        # The parameters of the URL may have a token.
        self.log.info("%s=%s %s", REMOTE, url.partition("/;")[0], self._mask_cmd(command))
        return command


def is_connect(conn_id: str) -> bool:
    """Return whether a connection is one to a Spark Connect server."""
    connection = SparkSubmitHook.get_connection(conn_id)
    return connection.conn_type == SparkConnectHook.conn_type or (connection.host or "").startswith(SCHEME)
