"""The freshness of partitions by plain loops: the reference of the arrays of `transom.ledger.freshness`."""

from collections.abc import Mapping, Sequence, Set
from datetime import datetime

from transom.core.partitions import SOURCE_STAGE, PartitionKey, TableKey
from transom.ledger.freshness import EVENTS, Freshness
from transom.ledger.input_hashes import is_stale, slice_hours
from transom.ledger.stage import InputRange


class PlainFreshness(Freshness):
    """Visits each hour, and creates an object for each partition."""

    def outdated_hours(self, stage: str, block: str, table: str) -> Sequence[datetime]:
        """Return the required hours of a block's table that a run of its stage must compute, in order."""
        key = (stage, block, table)
        if key not in self._outdated:
            definition, hours = self._tables[key], list[datetime]()
            state = [(reads, self.outdated_hours(*reads.series)) for reads in definition.state]
            inputs = [*state, *((reads, hours) for reads in definition.own)]
            for hour in self.required_hours:
                if self._differs(PartitionKey(*key, hour)) or any(
                    slice_hours(read, hour, reads) for reads, read in inputs
                ):
                    hours.append(hour)
            self._outdated[key] = hours
        return self._outdated[key]

    def _differs(self, partition: PartitionKey) -> bool:
        state = self.snapshot.get(partition)
        checks = self._tables[partition.series].checks
        return state is None or is_stale(state, self.inputs(partition), checks)

    def stale(self, stage: str) -> dict[datetime, PartitionKey]:
        """Return the hours of a stage in which a partition is stale, in order, each with its first root."""
        roots: dict[datetime, PartitionKey] = {}
        own = [table for table in [EVENTS, *self._tables] if table[0] == stage]
        others = sorted(table for table in self.snapshot.names if table[0] == stage and table not in own)
        for table in [*own, *others]:
            for hour, root in self._roots_of(table).items():
                state = self.snapshot.get(PartitionKey(*table, hour))
                unsettled = state is not None and state.status in ("writing", "blocked")
                if table in others or not unsettled or (state and state.damaged):
                    roots.setdefault(hour, root)
        return dict(sorted(roots.items()))

    def _stale_source_hours(self, table: TableKey) -> Set[datetime]:
        compared = table == EVENTS and self._source is not None
        hours = {
            partition.hour
            for partition, state in self.snapshot.items()
            if partition.series == table and (state.damaged or (compared and state.status == "writing"))
        }
        if table == EVENTS and self._source is not None:
            states = self.snapshot.series(*EVENTS)
            hours.update(hour for hour in self.snapshot.required_hours if hour not in states)
            expected = self._source.expected
            hours.update(hour for hour in states if states[hour].input_hashes != expected(hour))
        return hours

    def _find_roots(self, table: TableKey) -> dict[datetime, PartitionKey]:
        assert table[0] != SOURCE_STAGE
        roots: dict[datetime, PartitionKey] = {}
        stale: list[datetime] = []
        inputs: list[tuple[InputRange, Sequence[datetime], Mapping[datetime, PartitionKey]]] = []
        for reads in self._tables[table].part.reads:
            of_input = roots if reads.series == table else self._roots_of(reads.series)
            inputs.append((reads, stale if of_input is roots else sorted(of_input), of_input))
        outdated = set(self.outdated_hours(*table))
        for hour in self.required_hours:
            read = ((slice_hours(hours, hour, reads), of_input) for reads, hours, of_input in inputs)
            root = next((of_input[hours[0]] for hours, of_input in read if hours), None)
            if root is not None or hour in outdated:
                roots[hour] = root or PartitionKey(*table, hour)
                stale.append(hour)
        return roots
