"""An Optuna sampler that tests mostly on small shares of the data."""

from __future__ import annotations

from trimtuner.errors import InputError

try:
    import optuna

    from trimtuner.integrations.optuna.sampler import TrimTunerSampler
    from trimtuner.integrations.optuna.trials import fraction_of
except ModuleNotFoundError as error:
    raise InputError(f"the Optuna sampler needs {error.name!r}; pip install 'trimtuner[optuna]'") from None

if not hasattr(optuna.trial.FrozenTrial, "constraints"):  # with older ones best_trial would not know of the limits
    raise InputError(f"the Optuna sampler needs Optuna 5, not {optuna.__version__}; pip install 'trimtuner[optuna]'")

__all__ = ["TrimTunerSampler", "fraction_of"]
