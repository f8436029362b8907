"""A tracking store: its experiments and runs, what we call things there, and errors that keep its password."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from trimtuner.errors import InputError

FINISHED, FAILED = "FINISHED", "FAILED"  # of MLflow's states of a run, those that we give

STUDY_ID_TAG = "trimtuner.study_id"  # every run of ours has it
TRIAL_TAG = "trimtuner.trial"  # and a trial's run this too

_PAGE = 1000
_LONGEST_ERROR = 300
_SQLITE = "sqlite:"


@contextmanager
def opened(uri: str) -> Iterator[MlflowClient]:
    """The store at this address; whatever goes wrong with it is an InputError without the address's secrets."""
    if not isinstance(uri, str) or not uri.strip():
        raise InputError("the address of MLflow is empty; write http://host:5000 or sqlite:///mlflow.db")
    try:
        yield MlflowClient(tracking_uri=uri)
    except InputError:
        raise
    except (MlflowException, SQLAlchemyError, ImportError, OSError, ValueError) as error:
        # Without the original, whose text and frames have the address as it was given.
        raise InputError(f"MLflow at {shown(uri)}: {_brief(error, uri)}") from None


def shown(uri: str) -> str:
    """The address without user, password and options."""
    return _without_users(uri).partition("?")[0]


def require_existing(uri: str) -> None:
    """Refuse a SQLite file that is not there, which MLflow would make and find empty."""
    if uri.startswith(_SQLITE):
        path = make_url(uri).database
        if path and not Path(path).is_file():
            raise InputError(
                f"there is no file {path}; in {_SQLITE}///mlflow.db a path from here follows three slashes"
            )


def experiment_to_write(client: MlflowClient, name: str) -> str:
    """The id of the experiment, made if need be."""
    found = client.get_experiment_by_name(name)
    return str(client.create_experiment(name) if found is None else found.experiment_id)


def experiment_to_read(client: MlflowClient, name: str, uri: str) -> str:
    """The id of the experiment; an error names those that there are."""
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    names = [one.name for one in client.search_experiments(max_results=_PAGE)]
    some = ", ".join(repr(one) for one in names[:10])
    raise InputError(f"there is no experiment {name!r} at {shown(uri)}; name one of those that there are: {some}")


def runs_of(client: MlflowClient, experiment: str, wanted: str = "") -> Iterator[Run]:
    """Every run that MLflow's filter finds, the newest first."""
    token: str | None = None
    while True:
        page = client.search_runs(
            [experiment], wanted, max_results=_PAGE, order_by=["attributes.start_time DESC"], page_token=token
        )
        yield from page
        token = page.token
        if not token:
            return


def _brief(error: Exception, uri: str) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"this kind of store needs {error.name!r}; install it"
    text = _without_users(str(error).replace(uri, shown(uri)))
    first = text.strip().partition("\n")[0] or type(error).__name__
    return first if len(first) <= _LONGEST_ERROR else f"{first[:_LONGEST_ERROR]}…"


def _without_users(text: str) -> str:
    return re.sub(r"(?<=://)\S*@", "", text)
