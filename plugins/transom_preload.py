"""Import what tasks and the parsing of DAGs need, once, before a process forks for them.

Each task, and each parsing of a DAG file, runs in a fork. With Airflow's default settings, each fork imports
the same modules again, which takes longer than the work of a gate. With `[core] lazy_load_plugins = False`,
scheduler and dag-processor import this module when they start, and their forks have the modules. Otherwise it
imports nothing.
"""

from importlib import import_module

from airflow.configuration import conf
from airflow.sdk import Asset

MODULES = (
    "airflow.dag_processing.dagbag",
    "airflow.providers.apache.spark.operators.spark_submit",
    "airflow.sdk.execution_time.task_runner",
    # pyarrow imports them for the first array.
    "pandas",
    "pyarrow.pandas_compat",
    "sqlglot",
    "transom.alerts.deliver",
    "transom.app.command_lines",
    "transom.app.freshness",
    "transom.app.run_report",
    "transom.engine.gate",
    "transom.stream_files",
)


def preload() -> None:
    """Import the modules, and those that define the tables of each feature."""
    for name in MODULES:
        import_module(name)
    # The first asset imports what the installed providers need to check a URI.
    Asset("transom://stream/table")
    for feature in import_module("transom.features.registry").FEATURES:
        import_module(f"transom.features.{feature.name}.stage")


if not conf.getboolean("core", "lazy_load_plugins"):
    preload()
