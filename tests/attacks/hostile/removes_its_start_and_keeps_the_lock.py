"""Removes what says that it has begun, and holds what whoever starts it would hold."""

import fcntl
import os

from side import run_on

folder = os.environ["TRIMTUNER_FOLDER"]
os.unlink(os.path.join(folder, "begun.json"))
fcntl.flock(os.open(os.path.join(folder, "lock"), os.O_RDWR), fcntl.LOCK_EX)
run_on()
