"""Runs a study for an assistant: ``python -m … PATH DIGEST``, only if the file still says what was allowed."""

from __future__ import annotations

import sys
from pathlib import Path

from trimtuner.commands.assistants.allowed import unchanged_job
from trimtuner.commands.running import run_job
from trimtuner.errors import TrimTunerError
from trimtuner.jobs.studies import JobStudy


def main(path: Path, digest: str) -> int:
    """Run it to its end; the exit code, 0 where it got there."""
    try:
        print(f"over: {run_job(JobStudy(unchanged_job(path, digest)))}", flush=True)
    except TrimTunerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
