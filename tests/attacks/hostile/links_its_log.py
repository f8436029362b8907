"""Links its log to what is not its own to show."""

import os

from side import run_on

log = os.path.join(os.environ["TRIMTUNER_FOLDER"], "log.txt")
os.unlink(log)
os.symlink("/etc/hostname", log)
run_on()
