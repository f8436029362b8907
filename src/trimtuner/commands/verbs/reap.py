"""The verb ``reap`` of the command line."""

from __future__ import annotations

from trimtuner.commands.verbs.shared import JobPath, verb


@verb(15)
def reap(job: JobPath) -> None:
    """End what still runs for the study although its record does not know it."""
    from trimtuner.engines.protocol import reap as end_unknown
    from trimtuner.jobs.studies import JobStudy

    of = JobStudy.at(job)
    _, memory = of.open_to_run()
    known = {(one.trial.number, one.attempt) for one in memory.record.open_trials()}
    ended = end_unknown(of.engine(memory.record), memory.record.id, known)
    print(f"ended {len(ended)}: {', '.join(f'trial {one.trial}' for one in ended)}" if ended else "nothing to end")
