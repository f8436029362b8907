"""A line for each trial that ends, while a loop runs in Python."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from trimtuner.views.words import configuration, metric, share

if TYPE_CHECKING:
    from trimtuner.study.study import Study
    from trimtuner.views.trials import Row


class Progress:
    """Called after each trial of a loop: says how far it is, and what came of the trial."""

    def __init__(self, trials: int | None) -> None:
        self._of = "" if trials is None else f" of {trials}"
        self._ended = 0

    def __call__(self, study: Study, trial: Row) -> None:
        """Written where errors go, so that what a script prints stays its own."""
        self._ended += 1
        goal = study.problem.goal.metric
        told = f"{goal} {metric(goal, trial.metrics[goal])}" if goal in trial.metrics else trial.state
        where = f"on {share(trial.fraction)} of the data, {configuration(trial.config)}"
        print(f"trial {self._ended}{self._of}: {told} {where}", file=sys.stderr, flush=True)
