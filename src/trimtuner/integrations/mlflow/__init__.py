"""MLflow: the trials of a study as runs of an experiment, and the runs of an experiment as measurements."""

from trimtuner.errors import InputError

try:
    from trimtuner.integrations.mlflow.reading import FoundRuns, measurements_from
    from trimtuner.integrations.mlflow.writing import log_progress, log_study
except ModuleNotFoundError as error:
    raise InputError(f"MLflow needs {error.name!r}; pip install 'trimtuner[mlflow]'") from None

from trimtuner.integrations.tracking import Logged, TrackedStudy

__all__ = ["FoundRuns", "Logged", "TrackedStudy", "log_progress", "log_study", "measurements_from"]
