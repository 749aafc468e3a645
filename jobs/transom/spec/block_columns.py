"""The event columns that a block needs, and the events in which it needs them."""

from dataclasses import dataclass

from transom.spec.expressions import Expression


@dataclass(frozen=True)
class Use:
    """Columns that a block reads in events that meet a condition.

    Attributes:
        columns: their names.
        where: the condition, as Spark SQL; None is every event.
        decides: whether `where` itself reads the columns. If so, events for which it is null need them too.
    """

    columns: frozenset[str]
    where: str | None
    decides: bool = False

    @property
    def metric(self) -> str:
        """The name of its metric: the number of a file's events in which it reads the columns."""
        return f"{'not failing' if self.decides else 'meeting'} {self.where}"


@dataclass(frozen=True)
class BlockColumns:
    """The event columns that one block needs.

    Attributes:
        key: the columns that every event of the block must have.
        where: the condition on the events of the block, as Spark SQL; None is every event.
        uses: the columns that it reads in addition to its key.
    """

    name: str
    key: tuple[str, ...] = ()
    where: str | None = None
    uses: tuple[Use, ...] = ()

    @property
    def all_uses(self) -> tuple[Use, ...]:
        """Everything that it reads, including its key."""
        return (Use(frozenset(self.key), self.where), *self.uses)


def sql_of(condition: Expression | None) -> str | None:
    """Return the SQL of a condition; None for None."""
    return None if condition is None else condition.sql


def tested(condition: Expression | None) -> tuple[Use, ...]:
    """Return the columns that a block's own condition reads; empty for None."""
    return () if condition is None else (Use(frozenset(condition.columns), condition.sql, decides=True),)


def both(where: Expression | None, condition: Expression) -> str:
    """Return the SQL of both conditions together; a `where` of None is every event."""
    return condition.sql if where is None else f"{where.sql} AND {condition.sql}"
