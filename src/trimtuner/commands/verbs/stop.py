"""The verb ``stop`` of the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from trimtuner.commands.verbs.shared import JobPath, verb


@verb(14)
def stop(
    job: JobPath,
    now: Annotated[bool, typer.Option("--now", help="Also end the running trials.")] = False,
) -> None:
    """Ask every run of the study to start nothing more."""
    from trimtuner.jobs.studies import JobStudy
    from trimtuner.study.driver import stop_now

    of = JobStudy.at(job)
    _, memory = of.open_to_run()
    memory.record.request_stop()
    ended = stop_now(memory.record, of.engine(memory.record)) if now else []
    print("asked to stop" + (f"; ended trials {', '.join(map(str, ended))}" if ended else ""))
