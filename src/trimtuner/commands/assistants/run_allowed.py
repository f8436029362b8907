"""Runs a study for an assistant: ``python -m … PATH DIGEST``, only if the file still says what was allowed."""

from __future__ import annotations

import sys
from pathlib import Path

from trimtuner.commands.assistants.allowed import unchanged_job
from trimtuner.commands.running import run_job
from trimtuner.commands.verbs.shared import EXIT_BAD_INPUT, EXIT_NO_ANSWER
from trimtuner.errors import TrimTunerError
from trimtuner.jobs.studies import JobStudy


def main(path: Path, digest: str) -> int:
    """Run it to its end; the exit code, as that of ``trimtuner run``."""
    try:
        of = JobStudy(unchanged_job(path, digest))
        print(f"over: {run_job(of)}", flush=True)
    except TrimTunerError as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_INPUT
    return 0 if of.state().history.measurements else EXIT_NO_ANSWER


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
