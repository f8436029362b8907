"""Leaves children that nothing connects with it, and kills its parent."""

import os
import signal
import sys

from side import NOTES

program = "import sys; sys.path.insert(0, sys.argv[1]); import side; side.NOTES = sys.argv[2]; side.run_on()"
here = os.path.dirname(os.path.abspath(__file__))
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve(sys.executable, [sys.executable, "-c", program, here, NOTES], {})
        os._exit(0)
    os.wait()
import side

while side.count() < 2:
    pass
os.kill(os.getppid(), signal.SIGKILL)
