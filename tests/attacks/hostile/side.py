"""What hostile jobs have in common: they run on, deaf to what can be refused, and a side log says how long they did."""

import os
import signal
import time

NOTES = os.environ.get("NOTES", "")


def beat() -> None:
    """A line of the side log: who runs, and since when the machine is up."""
    descriptor = os.open(NOTES, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{os.getpid()} {time.monotonic():.3f}\n".encode())
    os.close(descriptor)


def count() -> int:
    """How many processes have written so far."""
    try:
        with open(NOTES) as file:
            return len({line.split()[0] for line in file})
    except FileNotFoundError:
        return 0


def run_on() -> None:
    """Until somebody ends it by force."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        beat()
        time.sleep(0.02)


if NOTES:
    beat()  # before its deed, for which it may be ended at once
