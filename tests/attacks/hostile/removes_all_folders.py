"""Removes the folders of all trials of the study, and runs on."""

import os
import shutil

from side import run_on

shutil.rmtree(os.path.dirname(os.environ["TRIMTUNER_FOLDER"]))
run_on()
