"""Leaves children that nothing connects with it, and kills its parent."""

import os
import signal
import subprocess
import sys

import side

PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); import side; side.NOTES = sys.argv[2]; side.run_on()"
here = os.path.dirname(os.path.abspath(__file__))
for _ in range(2):
    if os.fork() == 0:
        words = [sys.executable, "-c", PROGRAM, here, side.NOTES]
        subprocess.Popen(words, env={}, start_new_session=True)
        os._exit(0)
    os.wait()
while side.count() < 3:  # both, and itself
    pass
os.kill(os.getppid(), signal.SIGKILL)
