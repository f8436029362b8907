"""Our command line, with an AWS engine that looks more often than one should at a real cloud."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from aws_under_test import QUICK

from trimtuner.cli import main
from trimtuner.engines.aws import engine

engine.Pace = lambda: QUICK
main()
