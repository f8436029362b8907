"""Kills its parent, having asked not to die with it."""

import ctypes
import os
import signal

from side import run_on

ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
os.kill(os.getppid(), signal.SIGKILL)
run_on()
