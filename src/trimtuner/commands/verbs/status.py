"""The verb ``status`` of the command line."""

from __future__ import annotations

import json

from trimtuner.commands.verbs.shared import AsJson, JobPath, opened, verb


@verb(5)
def status(job: JobPath, as_json: AsJson = False) -> None:
    """Money, trials and the recommendation, as they stand; never in the way of a run."""
    from trimtuner.study.telling import status as status_of
    from trimtuner.study.telling import status_text

    state = opened(job).judged_state()
    print(json.dumps(status_of(state), indent=2) if as_json else status_text(state))
