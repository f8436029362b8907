"""An integration whose library is not installed says how to install it."""

import importlib
import sys

import pytest

from trimtuner.errors import InputError


@pytest.mark.parametrize("library", ["lightning", "mlflow", "tensorboard", "wandb"])
def test_a_library_that_is_not_there_is_named_with_what_installs_it(library, monkeypatch):
    for name in [
        name
        for name in sys.modules
        if name.split(".")[0] == library or name.startswith(f"trimtuner.integrations.{library}")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    with pytest.raises(InputError, match=rf"needs '{library}.*'; pip install 'trimtuner\[{library}\]'"):
        importlib.import_module(f"trimtuner.integrations.{library}")
