"""Airflow on SQLite: acquire the write lock when a transaction begins with a savepoint.

Airflow reads inside a savepoint and then writes. If another process has written in between, SQLite rejects
the write immediately, regardless of its timeout. So `airflow backfill create` would mostly fail while a
scheduler runs. With the lock from the beginning, each process waits for the other.
Airflow imports this module from the Python path by its name.
"""

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

# Airflow reads every public name of this module as one of its settings.
__all__: list[str] = []


@event.listens_for(Engine, "savepoint")
def _begin_to_write(connection: Connection, _name: str | None) -> None:
    dialect, database = connection.dialect, connection.connection.dbapi_connection
    if (dialect.name, dialect.driver) == ("sqlite", "pysqlite") and database and not database.in_transaction:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
