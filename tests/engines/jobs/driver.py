"""A driver that starts one attempt and then waits to be killed: ``driver.py module:Class launch-as-JSON``."""

import importlib
import json
import signal
import sys
import time
from pathlib import Path

from trimtuner.engines.protocol import Launch

signal.signal(signal.SIGINT, signal.SIG_DFL)  # who starts tests in the background may have it ignored
module, _, name = sys.argv[1].partition(":")
engine = getattr(importlib.import_module(module), name)()
given = json.loads(sys.argv[2])
for key in ("folder", "working_directory"):
    given[key] = Path(given[key])
launch = Launch(**{**given, "command": tuple(given["command"]), "secrets": tuple(given["secrets"])})
print("ready", flush=True)
print(engine.start(launch), flush=True)
time.sleep(300)
