"""A pool of configurations: all of a space, or those that stand for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from trimtuner.arrays import Booleans, Floats, Positions
from trimtuner.problem.axes import Axis, Configuration
from trimtuner.problem.expressions import Value

Key: TypeAlias = tuple[Value | tuple[bool] | None, ...]


class Pool:
    """Configurations to choose among, each with its row of numbers and its price per hour.

    ``interruptions_per_hour`` is how often the machines of each are taken away; None where none ever are.
    """

    def __init__(
        self,
        rows: Floats,
        prices_per_hour: Floats | None,
        configuration: Callable[[int], Configuration],
        key: Callable[[Mapping[str, Value]], Key],
        lasting: int | None = None,
        interruptions_per_hour: Floats | None = None,
    ) -> None:
        self.rows = rows
        self.lasting = len(rows) if lasting is None else lasting  # the first so many are there whatever was measured
        self.prices_per_hour = prices_per_hour
        self.configuration = configuration
        self.interruptions_per_hour = interruptions_per_hour
        self._key = key

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def _positions(self) -> dict[Key, int]:
        return {self._key(self.configuration(position)): position for position in range(len(self))}

    def __contains__(self, configuration: Mapping[str, Value]) -> bool:
        return self._key(configuration) in self._positions

    def position(self, configuration: Mapping[str, Value]) -> int:
        """Where the configuration stands in the pool."""
        return self._positions[self._key(configuration)]

    def without_interruptions(self) -> Pool:
        """The same configurations, were no machine ever taken away."""
        return Pool(self.rows, self.prices_per_hour, self.configuration, self._key, self.lasting)

    def rows_at(self, positions: Positions, fractions: Floats | float) -> Floats:
        """Rows as the models take them: the configuration's columns, then the fraction."""
        return np.column_stack([self.rows[positions], np.broadcast_to(fractions, np.shape(positions))])


def enumerated_codes(axes: Sequence[Axis]) -> Positions:
    """The codes of every configuration, one column an axis; -1 where a parameter is not active."""
    codes = np.zeros((1, 0), dtype=np.int64)
    for position, axis in enumerate(axes):
        active = _active_rows(axes[:position], codes, axis)
        with_value = np.hstack(
            [
                np.repeat(codes[active], int(axis.size), axis=0),
                np.tile(np.arange(int(axis.size)), int(active.sum()))[:, None],
            ]
        )
        without = np.hstack([codes[~active], np.full((int((~active).sum()), 1), -1)])
        codes = np.vstack([with_value, without])
    return codes


def _active_rows(earlier: Sequence[Axis], codes: Positions, axis: Axis) -> Booleans:
    condition = axis.condition
    if condition is None:
        return np.ones(len(codes), dtype=bool)
    named = [i for i, other in enumerate(earlier) if condition.names & set(other.names)]
    # A condition is asked once for each distinct combination of what it names, not once a configuration.
    combinations, inverse = np.unique(codes[:, named], axis=0, return_inverse=True)
    answers = []
    for combination in combinations:
        values: Configuration = {}
        for i, code in zip(named, combination, strict=True):
            values.update(earlier[i].values_of_code(int(code)))
        answers.append(condition.holds(values))
    return np.array(answers, dtype=bool)[inverse.reshape(-1)]
