"""`smac-mf`: SMAC3's `MultiFidelityFacade` (Hyperband with a random forest), by ask and tell.

Names are categories; numbers are floats from 0 to 1, in logs where they span much (ordered steps did worse: 6 seeds of
cnn). Budgets are shares of the data, from the smallest fraction to 1, eta = 3; a budget that the table does not have
goes to the nearest fraction in logs. SMAC knows no constraints: in its favour its loss is 1 - Accuracy_C, where cost
and time of a trial on a share of the data are scaled up in proportion (without that it runs after the most expensive
configurations). A failure has the loss 1. Also in its favour: ten random configurations first instead of ten for every
parameter, which would leave the model little of the search (not compared); the recommendation is the most accurate that
was measured within the limits at full data and, before there is one, the most accurate at the highest fraction of those
that seem to meet them. To save our time: forests without room for a million leaves, on one thread, which changes
nothing; and 1,000 challengers instead of 10,000, with at most 10 steps of local search, which may: 5 to 10 seeds of cnn
showed no difference beyond their scatter (7.1 to 9.9 units at 99 %), with 10,000 challengers not tried.
"""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from smac import MultiFidelityFacade, Scenario
from smac.acquisition.maximizer import LocalAndSortedRandomSearch
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.model.random_forest import RandomForest
from smac.runhistory import TrialInfo, TrialValue

from benchmarks.peers.configspace import loss_of, proposal_of, space_of
from benchmarks.peers.job import Job, Outcome, Proposal
from benchmarks.peers.peer import FULL, Record

FIRST_CONFIGURATIONS = 10
CHALLENGERS = 1_000
LOCAL_SEARCHES = 10
LOCAL_STEPS = 10
MOST_LEAVES = 1_024  # more than a search has trials; SMAC reserves room for a million in every tree
MANY_TRIALS = 10_000  # the replay ends the search, not SMAC

logging.getLogger("smac").setLevel(logging.ERROR)


class SmacPeer:
    """A facade that writes to a folder of its own, for as long as it lives."""

    def __init__(self, job: Job, record: Record, seed: int) -> None:
        self._job, self._record = job, record
        self._folder = tempfile.TemporaryDirectory()
        scenario = Scenario(
            space_of(job, seed),
            name="peer",
            output_directory=Path(self._folder.name),
            deterministic=True,
            n_trials=MANY_TRIALS,
            min_budget=job.fractions[0],
            max_budget=FULL,
            seed=seed,
        )
        self._facade = MultiFidelityFacade(
            scenario,
            initial_design=MultiFidelityFacade.get_initial_design(scenario, n_configs=FIRST_CONFIGURATIONS),
            model=_forest(scenario),
            acquisition_maximizer=LocalAndSortedRandomSearch(
                scenario.configspace,
                challengers=CHALLENGERS,
                local_search_iterations=LOCAL_SEARCHES,
                max_steps=LOCAL_STEPS,
                seed=seed,
            ),
            logging_level=False,
            overwrite=True,
        )
        self._open: TrialInfo | None = None

    def ask(self) -> Proposal | None:
        try:
            self._open = self._facade.ask()
        except (ConfigurationSpaceExhaustedException, StopIteration):
            return None
        return proposal_of(self._job, self._open.config, self._open.budget)

    def tell(self, outcome: Outcome) -> None:
        self._facade.tell(self._open, TrialValue(cost=loss_of(self._job, outcome)), save=False)

    def learn(self, outcome: Outcome) -> None:
        """A trial outside of its brackets has no place in Hyperband."""

    def recommend(self) -> int | None:
        return self._record.best_at_any_fraction()


def _forest(scenario: Scenario) -> RandomForest:
    """As the facade makes it, but for the leaves and the threads."""
    return RandomForest(
        configspace=scenario.configspace,
        log_y=True,
        n_trees=10,
        bootstrapping=True,
        ratio_features=1.0,
        min_samples_split=2,
        min_samples_leaf=1,
        max_leaf_nodes=MOST_LEAVES,
        n_jobs=1,
        instance_features=scenario.instance_features,
        seed=scenario.seed,
    )
