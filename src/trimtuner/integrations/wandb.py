"""Weights & Biases: the trials of a study as runs of a project, written offline; ``wandb sync`` uploads them.

A run has the configuration as its config, what was measured along the data as its history, and the study as its group.
Nothing is sent from here: no account is needed to log, and no server can be in the way. A run that was written cannot
be written to again, so each time that something is new the recommendation gets a run of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trimtuner.errors import InputError
from trimtuner.integrations.tracking import (
    RECOMMENDED,
    Logged,
    Noted,
    TrackedStudy,
    is_logged,
    is_marked,
    mark,
    mark_logged,
    notes_of,
    params_of,
    remove_half_written,
    tracked_of,
)
from trimtuner.problem.history import Outcome
from trimtuner.study.study import Study

try:
    import wandb
except ModuleNotFoundError as error:
    raise InputError(f"W&B needs {error.name!r}; pip install 'trimtuner[wandb]'") from None

__all__ = ["Logged", "TrackedStudy", "log_progress", "log_study"]

Config: TypeAlias = Mapping[str, object]

_OWN = "wandb"  # the folder that W&B makes in the one that it is given
_ID_LENGTH = 16
# A trial is no run of this process: neither its machine, its packages, its code nor its output belong to it.
_SETTINGS = wandb.Settings(
    console="off",
    disable_code=True,
    disable_git=True,
    silent=True,
    x_disable_machine_info=True,
    x_disable_meta=True,
    x_disable_stats=True,
    x_save_requirements=False,
)


def log_study(study: Study, project: str | None = None, folder: str | Path | None = None) -> Logged:
    """Write every ended trial, and the recommendation, as offline runs; without a project, one named as the study.

    They are in ``wandb`` in the folder, else in ``$WANDB_DIR``, else here, where ``wandb sync`` looks for them.
    """
    return log_progress(tracked_of(study), project, folder)


def log_progress(tracked: TrackedStudy, project: str | None = None, folder: str | Path | None = None) -> Logged:
    """The same for a study in a record."""
    place = Path(folder or os.environ.get("WANDB_DIR") or ".").absolute()
    try:
        (place / _OWN).mkdir(parents=True, exist_ok=True)
        return _Runs(tracked, project or tracked.name, place).write()
    except (wandb.Error, OSError) as error:
        raise InputError(f"W&B could not write its runs to {place}: {error}") from None


@dataclass(frozen=True)
class _Runs:
    tracked: TrackedStudy
    project: str
    place: Path

    def write(self) -> Logged:
        outcomes, name = self.tracked.outcomes, self.tracked.name
        known = [one for one in outcomes if any(is_logged(folder, one, name) for folder in self._folders(_of(one)))]
        new = [one for one in outcomes if one not in known]
        for outcome in new:
            mark_logged(self._write_trial(outcome), outcome)
        self._write_recommendation(f"after-{len(outcomes)}")
        return Logged(len(new), len(known), len(self.tracked.history.pending))

    def _id(self, part: str) -> str:
        return f"{self.tracked.id[:_ID_LENGTH]}-{part}"

    def _folders(self, part: str) -> list[Path]:
        return list((self.place / _OWN).glob(f"offline-run-*-{self._id(part)}"))

    def _write_trial(self, outcome: Outcome) -> Path:
        trial = outcome.trial
        about = {"study": self.tracked.name, "trial": trial.number, "origin": trial.origin}
        config = {**params_of(outcome), "trimtuner": {**about, "state": outcome.failure or "ok"}}
        start, _ = self.tracked.times_of(outcome)
        exit_code = 0 if outcome.failed is None else 1
        return self._write(_of(outcome), str(trial.number), "trial", config, notes_of(outcome), start, exit_code)

    def _write_recommendation(self, part: str) -> None:
        if any(is_marked(folder, part) for folder in self._folders(part)):
            return
        config = {"trimtuner": {"study": self.tracked.name, RECOMMENDED: self.tracked.recommended_config}}
        values = Noted(len(self.tracked.outcomes), 0.0, self.tracked.recommended)
        start = max((self.tracked.times_of(one)[1] for one in self.tracked.outcomes), default=0.0)
        mark(self._write(part, part.replace("-", " "), "recommendation", config, [values], start, 0), part)

    def _write(
        self, part: str, name: str, kind: str, config: Config, notes: Sequence[Noted], start: float, exit_code: int
    ) -> Path:
        """One run, whole; the folder that it is in."""
        for half_written in self._folders(part):
            remove_half_written(half_written)
        run = wandb.init(
            mode="offline",
            reinit="create_new",  # beside a run that the user's own code may have open
            dir=str(self.place),
            project=self.project,
            id=self._id(part),
            name=f"{self.tracked.name} {name}",
            group=self.tracked.name,
            job_type=kind,
            config=dict(config),
            settings=_SETTINGS,
        )
        for noted in notes:
            run.log({**noted.values, "_timestamp": start + noted.seconds}, step=noted.step)
        run.finish(exit_code=exit_code)
        folder = Path(run.dir).parent
        if self.place not in folder.parents:  # where it may not write, W&B takes another place without a word
            raise OSError(f"it wrote to {folder} instead")
        return folder


def _of(outcome: Outcome) -> str:
    return str(outcome.trial.number)
