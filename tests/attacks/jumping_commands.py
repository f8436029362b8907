"""Quick commands whose clock jumps: what the file in PYTHON_CLOCK_FILE says is added to the time of day, at once."""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from quick_commands import serve


def let_clock_jump() -> None:
    """Only the time of day: the monotonic clock is the kernel's, and nobody sets it."""
    path, time_of_day = os.environ["PYTHON_CLOCK_FILE"], time.time

    def jumping() -> float:
        with open(path, encoding="ascii") as file:
            return time_of_day() + float(file.read())

    time.time = jumping


if __name__ == "__main__":
    serve(sys.argv[1])
    let_clock_jump()
    from trimtuner.cli import main

    main()
