"""`botorch` and `botorch-mf`: BoTorch's constrained logEI at full data, and its multi-fidelity entropy search.

Both choose among the configurations of the table, never one twice. Numbers are scaled to 0 to 1 (in logs where they
span much), names are one-hot, and in their favour the known price is an input too, in logs. Models are the library's
own with their default priors, refitted at every step up to 20 observations and at every third (fifth for `botorch-mf`)
later, from the last hyper-parameters, for at most 15 iterations (60 at every step took five times as long and did no
better: 12 seeds of cnn and rnn, `botorch` only).

`botorch`: a `SingleTaskGP` for accuracy and the log of each limited metric; `LogConstrainedExpectedImprovement` over
all configurations, `LogProbabilityOfFeasibility` while none is known to be feasible. In its favour three random trials
first (five did worse on cnn and rnn, 20 seeds; ten was not tried). A failure is told as the lowest accuracy seen and
twice each limit. It recommends the most accurate that was measured within the limits, or the best Accuracy_C while
there is none.

`botorch-mf`: a `SingleTaskMultiFidelityGP` for accuracy and a `SingleTaskGP` for log cost and the log of each limited
metric, both over configuration and log fraction (the fraction itself did worse on rnn and about the same on cnn);
`qMultiFidelityLowerBoundMaxValueEntropy` at every configuration and fraction, weighed by the predicted cost plus 0.2
units for any trial, which is what 100 trials and 20 units come to (without that nearly all trials are at the smallest
fraction; 0.05 was tried too, on rnn). BoTorch has no constraints for it: in its favour it is multiplied by the chance
that the configuration meets the limits at full data, and the best accuracy is that of the configurations that probably
do. Five random trials at the smallest fraction come first. It recommends the most accurate that was measured within the
limits at full data and, before there is one, the most accurate at the highest fraction of those that seem to meet them
(the highest expected accuracy did worse on cnn). Its choices rest on four or five seeds of cnn and rnn each, which is
little: means moved by several units between forms.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
import torch
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement, LogProbabilityOfFeasibility
from botorch.acquisition.cost_aware import InverseCostWeightedUtility
from botorch.acquisition.max_value_entropy_search import qMultiFidelityLowerBoundMaxValueEntropy
from botorch.acquisition.utils import project_to_target_fidelity
from botorch.models import SingleTaskGP, SingleTaskMultiFidelityGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.optim import optimize_acqf
from botorch.optim.fit import fit_gpytorch_mll_scipy
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from benchmarks.kept import MOST_TRIALS
from benchmarks.peers.job import Job, Outcome, Proposal
from benchmarks.peers.peer import FULL, Record
from benchmarks.peers.search import BUDGET_UNITS
from trimtuner.problem.problem import COST, Constraint

FIRST_TRIALS = 3
FIRST_SMALL_TRIALS = 5
MOST_ITERATIONS = 15
FEW_OBSERVATIONS = 20
OVER_LIMIT_BY_FAILURE = 2.0
LIKELY = 0.5
HOPELESS = 0.01
FIXED_COST = BUDGET_UNITS / MOST_TRIALS  # of a trial, in mean full-data runs: what the budget makes of it
TINY = 1e-12
RESTARTS, RAW_SAMPLES = 4, 256  # of the optimiser, where there is no table to choose from

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
warnings.filterwarnings("ignore", module="botorch|gpytorch|linear_operator")


class Fitter:
    """Fits models one after the other, each starting from the last one's hyper-parameters.

    Every step while there are few observations, later ``every`` so many: fits are most of what a search takes.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._last: dict[str, Tensor] = {}

    def fit(self, model: SingleTaskGP) -> SingleTaskGP:
        """Ready to predict."""
        for name, parameter in model.named_parameters():
            if name in self._last:
                parameter.data = self._last[name].clone()
        count = model.train_targets.shape[-1]
        if not self._last or count <= FEW_OBSERVATIONS or count % self._every == 0:
            likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
            fit_gpytorch_mll_scipy(likelihood, options={"maxiter": MOST_ITERATIONS})
        self._last = {name: parameter.data for name, parameter in model.named_parameters()}
        return model.eval()


class ConstrainedImprovement:
    """`botorch`."""

    def __init__(self, job: Job, record: Record, seed: int) -> None:
        torch.manual_seed(seed)
        self._job, self._record = job, record
        self._rows = torch.tensor(job.features)
        self._fitter = Fitter(every=3)
        self._first = [int(one) for one in np.random.default_rng(seed).permutation(job.count)[:FIRST_TRIALS]]

    def ask(self) -> Proposal | None:
        seen = self._record.at(FULL)
        if len(seen) < len(self._first):
            return self._first[len(seen)], FULL
        tested = {one.position for one in seen}
        untested = [one for one in range(self._job.count) if one not in tested]
        if not untested:
            return None
        with torch.no_grad():
            scores = self._acquisition(seen)(self._rows[untested].unsqueeze(-2))
        return untested[int(scores.argmax())], FULL

    def tell(self, outcome: Outcome) -> None:
        """All is in the record."""

    learn = tell

    def recommend(self) -> int | None:
        return self._record.best_at_full_data()

    def _rows_of(self, positions: Sequence[int]) -> Tensor:
        return self._rows[positions]

    def _acquisition(self, seen: Sequence[Outcome]) -> LogConstrainedExpectedImprovement | LogProbabilityOfFeasibility:
        rows = self._rows_of([one.position for one in seen])
        worst = min((one.accuracy for one in seen if one.accuracy is not None), default=0.0)
        targets = [[worst if one.accuracy is None else one.accuracy for one in seen]]
        targets += [[_log_value(one, limit) for one in seen] for limit in self._job.constraints]
        with torch.enable_grad():
            model = self._fitter.fit(SingleTaskGP(rows, torch.tensor(targets).T))  # its outputs are independent
        limits = {
            place: (None, math.log(one.limit)) if one.is_upper else (math.log(one.limit), None)
            for place, one in enumerate(self._job.constraints, start=1)
        }
        feasible = [one.accuracy for one in seen if self._job.is_feasible(one)]
        if not feasible:
            return LogProbabilityOfFeasibility(model, limits)
        return LogConstrainedExpectedImprovement(model, max(feasible), 0, limits)


class ImprovementAnywhere(ConstrainedImprovement):
    """`botorch` where parameters are numbers between bounds: the same score, climbed by the library's own optimiser."""

    def __init__(self, job: Job, record: Record, seed: int) -> None:
        super().__init__(job, record, seed)
        self._first = list(range(FIRST_TRIALS))  # so many, at random
        self._generator = np.random.default_rng(seed)

    def ask(self) -> Proposal | None:
        seen, count = self._record.at(FULL), len(self._job.parameters)
        if len(seen) < len(self._first):
            places = self._generator.random(count)
        else:
            bounds = torch.stack([torch.zeros(count), torch.ones(count)])
            found, _ = optimize_acqf(
                self._acquisition(seen), bounds, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES
            )
            places = found[0].numpy()
        names = [one.name for one in self._job.parameters]
        return self._job.nearest(dict(zip(names, places.tolist(), strict=True))), FULL

    def _rows_of(self, positions: Sequence[int]) -> Tensor:
        return torch.tensor(self._job.features[positions])


def _log_value(outcome: Outcome, limit: Constraint) -> float:
    if outcome.accuracy is not None:
        return math.log(max(outcome.metrics[limit.metric], TINY))
    beyond = OVER_LIMIT_BY_FAILURE if limit.is_upper else 1.0 / OVER_LIMIT_BY_FAILURE
    return math.log(limit.limit * beyond)


class MultiFidelityEntropy:
    """`botorch-mf`."""

    def __init__(self, job: Job, record: Record, seed: int) -> None:
        torch.manual_seed(seed)
        self._job, self._record = job, record
        self._fitters = (Fitter(every=5), Fitter(every=5))
        self._order = [int(one) for one in np.random.default_rng(seed).permutation(job.count)]
        self._belief: Belief | None = None

    def ask(self) -> Proposal | None:
        if self._belief is None:
            smallest = self._job.fractions[0]
            return next(((one, smallest) for one in self._order if (one, smallest) not in self._record.outcomes), None)
        waiting = [
            (position, fraction)
            for fraction in self._job.fractions
            for position in range(self._job.count)
            if (position, fraction) not in self._record.outcomes
        ]
        promising = self._belief.drop_hopeless(waiting)
        return promising[int(self._belief.scores(promising).argmax())] if promising else None

    def tell(self, outcome: Outcome) -> None:  # noqa: ARG002 (all is in the record)
        seen = list(self._record.outcomes.values())
        if len(seen) >= FIRST_SMALL_TRIALS and any(one.accuracy is not None for one in seen):
            self._belief = Belief(self._job, seen, self._fitters)

    learn = tell

    def recommend(self) -> int | None:
        return self._record.best_at_any_fraction()


class Belief:
    """What the models of `botorch-mf` say after some trials."""

    def __init__(self, job: Job, seen: Sequence[Outcome], fitters: tuple[Fitter, Fitter]) -> None:
        self._job, self._rows = job, torch.tensor(job.features)
        worked = [one for one in seen if one.accuracy is not None]
        worst = min(one.accuracy for one in worked)
        accuracies = torch.tensor([worst if one.accuracy is None else one.accuracy for one in seen])
        self._fidelity = self._rows.shape[1]  # its column
        inputs = self._inputs([(one.position, one.fraction) for one in seen])
        model = SingleTaskMultiFidelityGP(inputs, accuracies.unsqueeze(-1), data_fidelities=[self._fidelity])
        self._accuracy = fitters[0].fit(model)
        inputs = self._inputs([(one.position, one.fraction) for one in worked])
        self._metrics = list(dict.fromkeys((COST, *(one.metric for one in job.constraints))))
        values = torch.tensor([[one.metrics[metric] for metric in self._metrics] for one in worked])
        self._logs = fitters[1].fit(SingleTaskGP(inputs, values.clamp_min(TINY).log()))
        with torch.no_grad():
            self._chances = self._chances_at_full_data()

    def drop_hopeless(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """Those with a hundredth of the best chance at least: others do not win, and scoring takes time."""
        best = max((float(self._chances[position]) for position, _ in proposals), default=0.0)
        return [one for one in proposals if self._chances[one[0]] >= HOPELESS * best]

    @torch.no_grad()
    def scores(self, proposals: Sequence[Proposal]) -> Tensor:
        """Information about the best accuracy per predicted cost, times the chance to meet the limits at full data."""
        everything = self._inputs([(position, FULL) for position in range(self._job.count)])
        fixed = FIXED_COST * self._costs(everything).mean()
        cost = GenericDeterministicModel(lambda inputs: fixed + self._costs(inputs))
        likely = self._chances >= LIKELY
        information = qMultiFidelityLowerBoundMaxValueEntropy(
            self._accuracy,
            everything[likely] if likely.any() else everything,
            cost_aware_utility=InverseCostWeightedUtility(cost),
            project=lambda inputs: project_to_target_fidelity(inputs, {self._fidelity: FULL}, self._fidelity + 1),
        )
        positions = [position for position, _ in proposals]
        return information(self._inputs(proposals).unsqueeze(-2)) * self._chances[positions]

    def _costs(self, inputs: Tensor) -> Tensor:
        return self._logs.posterior(inputs).mean[..., :1].exp()  # cost is the first metric

    def _chances_at_full_data(self) -> Tensor:
        everything = self._inputs([(position, FULL) for position in range(self._job.count)])
        posterior = self._logs.posterior(everything)
        means, deviations = posterior.mean, posterior.variance.sqrt()
        chances = torch.ones(self._job.count)
        for limit in self._job.constraints:
            place = self._metrics.index(limit.metric)
            below = torch.special.ndtr((math.log(limit.limit) - means[:, place]) / deviations[:, place])
            chances *= below if limit.is_upper else 1.0 - below
        return chances

    def _inputs(self, proposals: Sequence[Proposal]) -> Tensor:
        """Features and fidelity: 0 at the smallest fraction, 1 on all data, in logs between."""
        positions, fractions = zip(*proposals, strict=True)
        fidelities = 1.0 - torch.tensor(fractions).log() / math.log(self._job.fractions[0])
        return torch.cat([self._rows[list(positions)], fidelities.unsqueeze(-1)], dim=-1)
