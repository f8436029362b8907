"""Who takes part, in the order of the report. A peer's package is imported when its search runs, not before."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module, metadata, resources
from pathlib import Path

from benchmarks.peers import ours
from benchmarks.peers.search import search
from benchmarks.variants import Variant
from trimtuner.errors import InputError
from trimtuner.study.replay import ReplayRun

HERE = Path(__file__).parent
DECIDING_ROOMS = ("decisions", "models", "problem", "tuning")  # of our package: what a search depends on

RunSearch = Callable[[Variant, int, int], ReplayRun]  # on a variant, with a seed, so many trials at most


@dataclass(frozen=True)
class Entrant:
    """A tool in the comparison; ``module`` has the choices that were made for it in its docstring."""

    name: str
    title: str
    module: str
    maker: str | None  # None: a method of ours, by its name
    packages: tuple[str, ...] = ()
    is_slow: bool = (
        False  # a search takes longer than those of all others together: few seeds, and no longer than needed
    )

    def load(self) -> RunSearch:
        """Import what it needs: not to be counted as its thinking."""
        if self.maker is None:
            return partial(ours.search_with, self.name)
        make = getattr(import_module(f"benchmarks.peers.{self.module}"), self.maker)
        return lambda variant, seed, trials: search(variant, make, seed, trials, until_settled=self.is_slow)

    def version(self) -> str:
        """Of what decides: searches by another one are run again."""
        if self.maker is None:
            return f"trimtuner {metadata.version('trimtuner')} ({_digest_of_ours()})"
        return ", ".join(f"{package} {metadata.version(package)}" for package in self.packages) or "-"

    def choices(self) -> str:
        """What was chosen for it, from its module, which need not be importable."""
        return ast.get_docstring(ast.parse((HERE / f"{self.module}.py").read_text(encoding="utf-8"))) or ""


CONFIGSPACE, TORCH = "ConfigSpace", "torch"  # the tools stand on these

ENTRANTS = (
    Entrant("trimtuner", "trimtuner (default)", "ours", None),
    Entrant("random-small", "random screening at the smallest fraction", "control", "RandomSmall"),
    Entrant("dehb", "DEHB (given Accuracy_C)", "dehb_peer", "DehbPeer", ("dehb", CONFIGSPACE)),
    Entrant("smac-mf", "SMAC3 multi-fidelity (given Accuracy_C)", "smac_peer", "SmacPeer", ("smac", CONFIGSPACE)),
    Entrant("eic", "EI_c with a GP at full data (ours)", "ours", None),
    Entrant(
        "botorch",
        "BoTorch constrained logEI at full data",
        "botorch_peers",
        "ConstrainedImprovement",
        ("botorch", TORCH),
    ),
    Entrant(
        "botorch-mf",
        "BoTorch multi-fidelity entropy search",
        "botorch_peers",
        "MultiFidelityEntropy",
        ("botorch", TORCH),
        is_slow=True,
    ),
    Entrant("optuna-tpe", "Optuna TPE with constraints at full data", "optuna_peers", "make_tpe", ("optuna",)),
    Entrant("optuna-gp", "Optuna GP with constraints at full data", "optuna_peers", "make_gp", ("optuna", TORCH), True),
)


def entrant_named(name: str) -> Entrant:
    for entrant in ENTRANTS:
        if entrant.name == name:
            return entrant
    raise InputError(f"there is no peer {name!r}; known are {', '.join(one.name for one in ENTRANTS)}")


def _digest_of_ours() -> str:
    package = Path(str(resources.files("trimtuner")))
    files = sorted(file for room in DECIDING_ROOMS for file in (package / room).rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]
