"""Puts a folder where its end is to be written."""

import os

from side import run_on

os.mkdir(os.path.join(os.environ["TRIMTUNER_FOLDER"], "end.json"))
run_on()
