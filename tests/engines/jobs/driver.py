"""A driver that starts one attempt and then waits to be killed.

``driver.py module:function argument launch``, the last two in JSON.
"""

import json
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import under_test

from trimtuner.engines.protocol import Launch, Machines

signal.signal(signal.SIGINT, signal.SIG_DFL)  # who starts tests in the background may have it ignored
engine = under_test.make(sys.argv[1], sys.argv[2])
given = json.loads(sys.argv[3])
for key in ("folder", "working_directory"):
    given[key] = Path(given[key])
machines = given["machines"] and Machines(**{**given["machines"], "helpers": tuple(given["machines"]["helpers"])})
tuples = {key: tuple(given[key]) for key in ("command", "secrets")}
launch = Launch(**{**given, **tuples, "machines": machines})
print("ready", flush=True)
print(engine.start(launch), flush=True)
time.sleep(300)
