"""PyTorch Lightning: a callback that reports to trimtuner while one run passes the smaller shares of the data."""
# ruff: noqa: ARG002  (its methods have the parameters that Lightning gives)

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import SupportsFloat, TypeAlias

from trimtuner.errors import InputError
from trimtuner.reporting import Snapshots, report

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.utilities.seed import isolate_rng
    from torch import no_grad
except ModuleNotFoundError as error:
    raise InputError(f"the callback needs {error.name!r}; pip install 'trimtuner[lightning]'") from None

Evaluate: TypeAlias = Callable[[LightningModule], Mapping[str, SupportsFloat]]


class ReportSnapshots(Callback):
    """Evaluates and reports at each of the snapshots' shares, and at the end of the training.

    All batches of the run, over all its epochs, are ``fraction`` of the data; a share is reported after the batch in
    which it is reached. ``evaluate(module)`` measures, apart from Lightning's own validation: in evaluation mode,
    without gradients, on every process, and with the random numbers put back, so that the training is the same as
    without snapshots. Only the first process reports.
    """

    def __init__(self, evaluate: Evaluate, *, fraction: float = 1.0, snapshots: Iterable[float] = ()) -> None:
        self._evaluate = evaluate
        self._due = Snapshots(fraction, snapshots, total=1)  # how many batches there are is known at the start

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Find out how many batches are all of the run."""
        if self._due.shares:
            self._due = Snapshots(self._due.fraction, self._due.shares, _batch_count(trainer))

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: object, batch: object, batch_idx: int
    ) -> None:
        """Report the shares that this batch reached."""
        if not self._due.shares:
            return
        before = trainer.current_epoch * int(trainer.num_training_batches) + batch_idx
        for share in self._due.passed(before, before + 1):
            self._report(trainer, pl_module, share)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Report what the whole run measured, also when it was stopped early."""
        self._report(trainer, pl_module, self._due.fraction)

    def _report(self, trainer: Trainer, module: LightningModule, share: float) -> None:
        modes = [(part, part.training) for part in module.modules()]  # what is frozen stays frozen
        module.eval()
        with no_grad(), isolate_rng():
            measured = self._evaluate(module)
        for part, was_training in modes:
            part.training = was_training
        if trainer.is_global_zero:
            report(**{**measured, "fraction": share})


def _batch_count(trainer: Trainer) -> int:
    epochs, batches = trainer.max_epochs, trainer.num_training_batches
    if epochs is None or epochs < 1 or trainer.max_steps != -1 or not math.isfinite(batches):
        raise InputError(
            "snapshots need to know how long the run is: give the Trainer max_epochs (not max_steps), and a training "
            "loader with a length"
        )
    return epochs * int(batches)
