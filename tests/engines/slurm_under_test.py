"""The Slurm engine for the conformance suite: real jobs on a real cluster of three nodes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from under_test import SECRET, UnderTest

from trimtuner.engines.slurm.engine import SlurmEngine, SlurmPace
from trimtuner.engines.slurm.settings import SlurmSettings

QUICK = SlurmPace(look=0.3, hurry=0.1, settle=3.0, in_vain=1.0, gentle=8.0, stopped_within=60.0)
SETTINGS = SlurmSettings(python=sys.executable, vm_types={"helper": ("--constraint=small",)})


def slurm(request: pytest.FixtureRequest, path: Path) -> UnderTest:
    request.getfixturevalue("slurm_cluster")
    return UnderTest("slurm_under_test:make_slurm", json.dumps(str(path / "studies")), (), 1.0)


def make_slurm(folder: str) -> SlurmEngine:
    return SlurmEngine(Path(folder), SECRET, SETTINGS, QUICK)
