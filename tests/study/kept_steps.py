"""A training in steps that keeps how far it came: ``kept_steps.py CHECKPOINT STEPS INTERVAL NOTES ATTEMPTS``.

However busy the machine is, it is not through before its last attempt.
"""

import os
import sys
import time

folder, steps, interval, notes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
is_last = os.environ["TRIMTUNER_ATTEMPT"] == sys.argv[5]
file = os.path.join(folder, "step")
done = 0
if os.path.exists(file):
    with open(file) as kept:
        done = int(kept.read())

log = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for step in range(done + 1, steps + 1):
    time.sleep(0.01)
    os.write(log, f"{os.environ['TRIMTUNER_TRIAL']} {os.environ['TRIMTUNER_ATTEMPT']} {step}\n".encode())
    if step % interval == 0:
        with open(f"{file}.new", "w") as kept:
            kept.write(str(step))
        os.replace(f"{file}.new", file)
if not is_last:
    time.sleep(300)
print('::metric {"accuracy": 0.5}', flush=True)
