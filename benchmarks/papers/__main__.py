"""``python -m benchmarks.papers``, which ``make papers`` calls."""

import sys

from benchmarks.papers.command import app
from trimtuner.errors import TrimTunerError

if __name__ == "__main__":
    try:
        app()
    except TrimTunerError as error:
        sys.exit(f"papers: {error}")
