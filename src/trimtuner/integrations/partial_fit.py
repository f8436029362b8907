"""scikit-learn's ``partial_fit``: one pass over a share of the data that reports the smaller shares on its way.

Any model with a ``partial_fit(inputs, targets)`` will do; nothing of scikit-learn is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from trimtuner.arrays import Positions
from trimtuner.errors import InputError
from trimtuner.reporting import Snapshots, report


class LearnsInParts(Protocol):
    """A model that learns from one batch after the other."""

    @property
    def partial_fit(self) -> Callable[..., object]:
        """Learn from these inputs and targets; some classifiers take ``classes=`` too."""


class Rows(Protocol):
    """An array, a sparse matrix or a data frame: something of which some rows can be taken."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, key: Positions, /) -> object: ...


Model = TypeVar("Model", bound=LearnsInParts)
Evaluate: TypeAlias = Callable[[Model], Mapping[str, float]]


def fit_with_snapshots(
    model: Model,
    inputs: Rows,
    targets: Rows,
    evaluate: Evaluate[Model],
    *,
    fraction: float = 1.0,
    snapshots: Iterable[float] = (),
    classes: Iterable[object] | None = None,
    batch_size: int = 32,
    seed: int = 0,
) -> Mapping[str, float]:
    """Train the model once on a share of the rows, report at each smaller share and at the end; the last metrics.

    The order of the rows depends on the seed only, so that a share is the same rows in every trial and a larger one
    begins with them. A share is reported after the batch in which it is reached. ``classes``, all labels there are,
    is for classifiers: the first batch may not have every one.
    """
    count = _row_count(inputs, targets)
    if isinstance(batch_size, bool) or batch_size < 1:
        raise InputError(f"batch_size={batch_size!r} must be a whole number from 1")
    order = np.random.default_rng(seed).permutation(count)[: round(count * fraction)]
    if not len(order):
        raise InputError(f"fraction {fraction!r} of {count} rows is not a single row; offer larger fractions")
    due = Snapshots(fraction, snapshots, len(order))
    known_classes = {} if classes is None else {"classes": np.asarray(list(classes))}
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        model.partial_fit(_taken(inputs, batch), _taken(targets, batch), **known_classes)
        for share in due.passed(start, start + len(batch)):
            report(**{**evaluate(model), "fraction": share})
    measured = evaluate(model)
    report(**{**measured, "fraction": fraction})
    return measured


def _row_count(inputs: Rows, targets: Rows) -> int:
    for name, rows in (("inputs", inputs), ("targets", targets)):
        if not getattr(rows, "shape", ()):
            raise InputError(f"the {name} must be an array, a sparse matrix or a data frame, not {type(rows).__name__}")
    if inputs.shape[0] != targets.shape[0]:
        raise InputError(f"there are {inputs.shape[0]} rows of inputs, but {targets.shape[0]} of targets")
    return inputs.shape[0]


def _taken(rows: Rows, positions: Positions) -> object:
    by_position: Rows = getattr(rows, "iloc", rows)  # a data frame's own brackets go by name
    return by_position[positions]
