"""Says that it has ended well after a millisecond, and runs on."""

import json
import os

from side import run_on

with open(os.path.join(os.environ["TRIMTUNER_FOLDER"], "end.json"), "w") as file:
    json.dump({"kind": None, "detail": "exit code 0", "seconds": 0.001}, file)
run_on()
