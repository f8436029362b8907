"""Takes all rights from its folder."""

import os

from side import run_on

os.chmod(os.environ["TRIMTUNER_FOLDER"], 0)
run_on()
