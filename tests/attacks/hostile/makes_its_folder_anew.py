"""Puts an empty folder in the place of its own."""

import os
import shutil

from side import run_on

folder = os.environ["TRIMTUNER_FOLDER"]
shutil.rmtree(folder)
os.mkdir(folder)
run_on()
