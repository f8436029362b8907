"""Studies to look at, whose every number is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import trimtuner as tt
from decisions.fakes import IDENTITY, LOG, belief_of, gaussian_of_times, gaussian_over, history_of, problem_of, ran
from trimtuner.engines.protocol import Report
from trimtuner.problem.history import History
from trimtuner.records import Attempt
from trimtuner.state import Limits, Money, StudyState
from trimtuner.tuning.recipes import recipe_named

HOSTILE = "<script>alert('x')</script>\"'&`|*"


def subject_of(problem, history=History(), belief=None, **changes) -> StudyState:  # noqa: B008  (a frozen value)
    """A study of the default method, with the belief that is given."""
    settings = {
        "name": "shown",
        "method": "trimtuner",
        "recipe": recipe_named("trimtuner"),
        "seed": 0,
        "money": Money(problem.budget, history.spent, 0.0),
        "known": belief,
    }
    return StudyState(problem=problem, history=history, **{**settings, **changes})


def known_subject(space, scores, seconds, *constraints, outcomes=(), **changes) -> StudyState:
    """A study whose model is sure of the score and of the time at every place of the space."""
    goal = {name: changes.pop(name) for name in ("maximize", "minimize", "budget") if name in changes}
    problem = problem_of(space, *constraints, **goal)
    quantities = {
        "score": (IDENTITY, gaussian_over(space, scores, 1e-8)),
        "time": (LOG, gaussian_of_times(space, np.asarray(seconds, dtype=float), 1e-8)),
    }
    history = history_of(*outcomes)
    belief = belief_of(problem, quantities, list(history.measurements) or None)
    return subject_of(problem, history, belief, **changes)


def attempt(trial, asked, started, ended, usd=0.1, number=1, failed=None, reserve=1.0) -> Attempt:
    return Attempt(trial, number, asked, started, ended, failed, reserve, usd if ended is not None else None)


def real_subject(trials=12, **changes) -> StudyState:
    """A study that really searched two kinds of machines, with a failure, a pre-emption, and one trial running."""
    vms = {"small": tt.VM(2, 4, 0.1), "large": tt.VM(8, 16, 0.4)}
    cloud = tt.Cloud(vms, vm_count=[1, 2])
    space = tt.Space({"x": tt.Choice([1, 2, 3])}, cloud=cloud, fractions=[0.1, 1.0])
    settings = {"maximize": "accuracy", "constraints": ["cost <= 0.06"], "method": "trimtuner-dt", "budget": 5.0}
    study = tt.Study(space, **{**settings, **changes})
    for number in range(trials):
        trial = study.ask()
        if number in (3, 4):
            study.tell(trial, failed={3: "oom", 4: "preempted"}[number], time=5.0)
            continue
        config, cores = trial.config, {"small": 2, "large": 8}[trial.config["vm_type"]] * trial.config["vm_count"]
        score = 0.6 + 0.1 * config["x"] * trial.fraction**0.3
        study.tell(trial, accuracy=score, time=20 + 4000 * trial.fraction / cores)
    study.ask()
    return study.state()


def reporting(subject, reports=({"accuracy": 0.1}, {"accuracy": 0.3})) -> StudyState:
    """The study with its last trial started ten seconds ago, and with what it reported since, a second apart."""
    number = subject.history.pending[0].number
    said = tuple(Report(metrics, float(place + 1)) for place, metrics in enumerate(reports))
    changes = {"now": 110.0, "attempts": (attempt(number, 99.0, 100.0, None),), "runs": 1}
    return replace(subject, **changes, reports_of=lambda _trial, _attempt: said)


__all__ = ["HOSTILE", "Limits", "Money", "attempt", "known_subject", "ran", "real_subject", "reporting", "subject_of"]
