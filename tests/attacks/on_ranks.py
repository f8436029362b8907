"""A hostile job on some nodes of a trial, when all have begun; the others run on until they are asked to end."""

import importlib
import os
import runpy
import sys
import time

ranks, script = sys.argv[1:]
sys.path.insert(0, os.path.dirname(script))
side = importlib.import_module("side")
while side.count() < int(os.environ["WORLD_SIZE"]):
    time.sleep(0.01)
if os.environ["RANK"] in ranks.split(","):
    runpy.run_path(script, run_name="__main__")
while True:
    side.beat()
    time.sleep(0.02)
