"""`dehb`: DEHB (differential evolution within Hyperband), by ask and tell.

Parameters, fidelities (eta = 3), loss, failures and recommendation as for `smac-mf`, with the same help: floats from 0
to 1 (40 seeds: ordered steps did worse on cnn and digits, and better at 99 % on rnn; type and number of machines as one
step by price did better than floats at 99 % on cnn, worse on rnn and digits), 1 - Accuracy_C with cost and time scaled
up in proportion to the data (scaling by the growth seen so far was a little better on cnn and worse on rnn and digits;
no scaling was far worse), a recommendation from the highest fraction until one is measured within the limits at full
data.
"""

from __future__ import annotations

import tempfile

from dehb import DEHB
from loguru import logger

from benchmarks.peers.configspace import loss_of, proposal_of, space_of
from benchmarks.peers.job import Job, Outcome, Proposal
from benchmarks.peers.peer import FULL, Record


class DehbPeer:
    """An optimiser that writes to a folder of its own, for as long as it lives."""

    def __init__(self, job: Job, record: Record, seed: int) -> None:
        self._job, self._record = job, record
        self._folder = tempfile.TemporaryDirectory()
        self._optimiser = DEHB(
            cs=space_of(job, seed),
            min_fidelity=job.fractions[0],
            max_fidelity=FULL,
            n_workers=1,
            seed=seed,
            output_path=self._folder.name,
            save_freq="end",
        )
        logger.remove()  # it logs to the terminal and to a file
        self._open: dict[str, object] = {}

    def ask(self) -> Proposal | None:
        self._open = self._optimiser.ask()
        return proposal_of(self._job, self._open["config"], self._open["fidelity"])

    def tell(self, outcome: Outcome) -> None:
        self._optimiser.tell(self._open, {"fitness": loss_of(self._job, outcome), "cost": outcome.cost})

    def learn(self, outcome: Outcome) -> None:
        """A trial outside of its brackets has no place in Hyperband."""

    def recommend(self) -> int | None:
        return self._record.best_at_any_fraction()
