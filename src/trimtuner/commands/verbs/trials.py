"""The verb ``trials`` of the command line."""

from __future__ import annotations

import json

from trimtuner.commands.verbs.shared import AsJson, JobPath, opened, verb


@verb(9)
def trials(job: JobPath, as_json: AsJson = False) -> None:
    """Every trial: where, what it measured, what it cost, how it ended."""
    from trimtuner.study.telling import trial_rows, trials_text

    state = opened(job).state()
    print(json.dumps(trial_rows(state), indent=2) if as_json else trials_text(state))
