"""Removes its folder, and runs on."""

import os
import shutil

from side import run_on

shutil.rmtree(os.environ["TRIMTUNER_FOLDER"])
run_on()
