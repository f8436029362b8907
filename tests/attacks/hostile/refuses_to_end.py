"""Hears no signal that can be refused, in a family of its own."""

import os

from side import run_on

for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        break
run_on()
