"""Our command line, with a Slurm engine that looks more often than one should at a cluster that others use."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from slurm_under_test import QUICK

from trimtuner.cli import main
from trimtuner.engines.slurm import engine

engine.SlurmPace = lambda: QUICK
main()
