"""The parameters as a ConfigSpace, and the loss, which SMAC and DEHB share."""

from __future__ import annotations

from collections.abc import Mapping

from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, UniformFloatHyperparameter

from benchmarks.peers.job import Job, Names, Outcome, Proposal


def space_of(job: Job, seed: int) -> ConfigurationSpace:
    """Names as categories, numbers as floats between 0 and 1."""
    space = ConfigurationSpace(seed=seed)
    for parameter in job.parameters:
        if isinstance(parameter, Names):
            space.add(CategoricalHyperparameter(parameter.name, parameter.values))
        else:
            space.add(UniformFloatHyperparameter(parameter.name, 0.0, 1.0))
    return space


def proposal_of(job: Job, configuration: Mapping[str, str | float], fidelity: float) -> Proposal:
    """The nearest that the table has."""
    wish = {
        one.name: str(configuration[one.name]) if isinstance(one, Names) else float(configuration[one.name])
        for one in job.parameters
    }
    return job.nearest(wish), job.nearest_fraction(fidelity)


def loss_of(job: Job, outcome: Outcome) -> float:
    """1 - Accuracy_C, with cost and time as full data would take if they grew in proportion to it."""
    return 1.0 - job.accuracy_c(job.extrapolated(outcome))
