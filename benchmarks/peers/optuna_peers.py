"""`optuna-tpe` and `optuna-gp`: Optuna's TPE and GP samplers with constraints, every trial at full data.

Names are categories. Numbers are floats from 0 to 1 (in logs where they span much) for TPE, and ordered steps for the
GP sampler: for TPE floats did better than steps or categories, alone and multivariate (20 seeds of cnn, rnn and
digits); for the GP sampler floats did better on cnn, worse on rnn (8 seeds), and took three to four times as long. A
limit is told as log(measured / limit), which is smooth and has no unit. A failure is told as the lowest accuracy seen
with every limit broken, because Optuna ignores trials told as failed and proposes them again. In their favour: five
random trials first instead of ten (three did worse for TPE; for the GP sampler three was better on cnn and worse on
rnn, ten was not tried); `deterministic_objective=True` for the GP sampler; the recommendation is the most accurate that
was measured within the limits, or the best Accuracy_C while there is none.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from benchmarks.peers.job import Job, Names, Numbers, Outcome, Proposal
from benchmarks.peers.peer import FULL, Record

STARTUP_TRIALS = 5
BROKEN_BY_FAILURE = 1.0  # in logs

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)


class OptunaPeer:
    """A study in memory."""

    def __init__(
        self, job: Job, record: Record, sampler: optuna.samplers.BaseSampler, numbers: type[Floats | Steps]
    ) -> None:
        self._job, self._record = job, record
        self._numbers = {one.name: numbers(one) for one in job.parameters if isinstance(one, Numbers)}
        names = {one.name: CategoricalDistribution(one.values) for one in job.parameters if isinstance(one, Names)}
        self._distributions: dict[str, BaseDistribution] = {
            **names,
            **{name: one.distribution for name, one in self._numbers.items()},
        }
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._open: optuna.Trial | None = None

    def ask(self) -> Proposal | None:
        self._open = self._study.ask(self._distributions)
        wish = {
            name: self._numbers[name].place(value) if name in self._numbers else value
            for name, value in self._open.params.items()
        }
        return self._job.nearest(wish), FULL

    def tell(self, outcome: Outcome) -> None:
        for name, broken in self._constraints(outcome).items():
            self._open.set_constraint(name, broken)
        self._study.tell(self._open, self._value(outcome))

    def learn(self, outcome: Outcome) -> None:
        wish = self._job.wish_for(outcome.position)
        trial = optuna.trial.create_trial(
            params={
                name: self._numbers[name].value(place) if name in self._numbers else place
                for name, place in wish.items()
            },
            distributions=self._distributions,
            value=self._value(outcome),
            constraints=self._constraints(outcome),
        )
        self._study.add_trial(trial)

    def recommend(self) -> int | None:
        return self._record.best_at_full_data()

    def _value(self, outcome: Outcome) -> float:
        if outcome.accuracy is not None:
            return outcome.accuracy
        return min((one.accuracy for one in self._record.at(FULL) if one.accuracy is not None), default=0.0)

    def _constraints(self, outcome: Outcome) -> Mapping[str, float]:
        found = {}
        for constraint in self._job.constraints:
            if outcome.accuracy is None:
                found[constraint.text] = BROKEN_BY_FAILURE
            else:
                over = math.log(outcome.metrics[constraint.metric] / constraint.limit)
                found[constraint.text] = over if constraint.is_upper else -over
        return found


class Floats:
    """A number as its place between 0 and 1."""

    def __init__(self, parameter: Numbers) -> None:  # noqa: ARG002
        self.distribution = FloatDistribution(0.0, 1.0)

    def place(self, value: float) -> float:
        return value

    def value(self, place: float) -> float:
        return place


class Steps:
    """A number as the rank of its value."""

    def __init__(self, parameter: Numbers) -> None:
        self._places = parameter.places
        self.distribution = IntDistribution(0, len(parameter.values) - 1)

    def place(self, value: int) -> float:
        return self._places[value]

    def value(self, place: float) -> int:
        return self._places.index(place)


def make_tpe(job: Job, record: Record, seed: int) -> OptunaPeer:
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP_TRIALS)
    return OptunaPeer(job, record, sampler, Floats)


def make_gp(job: Job, record: Record, seed: int) -> OptunaPeer:
    sampler = optuna.samplers.GPSampler(seed=seed, n_startup_trials=STARTUP_TRIALS, deterministic_objective=True)
    return OptunaPeer(job, record, sampler, Steps)
