"""Airflow on SQLite: a transaction that begins with a savepoint takes the right to write at once.

Airflow reads inside a savepoint and writes then. SQLite refuses such a write at once, and whatever its
timeout, where another process has written in between: `airflow backfill create` beside a scheduler would
fail more often than not. Who has the right to write from the beginning waits for others, and they for it.
Airflow imports this module by its name, wherever it is on the Python path.
"""

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

# Airflow takes every public name of this module for a setting of its own.
__all__: list[str] = []


@event.listens_for(Engine, "savepoint")
def _begin_to_write(connection: Connection, _name: str | None) -> None:
    dialect, held = connection.dialect, connection.connection.dbapi_connection
    if (dialect.name, dialect.driver) == ("sqlite", "pysqlite") and held and not held.in_transaction:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
