"""From a job file to what is shown of its study; read from the record, which is neither changed nor locked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from trimtuner.engines.supervising.files import log_of, open_regular
from trimtuner.jobs.differing import differences_from, note, require_judgeable
from trimtuner.jobs.studies import JobStudy
from trimtuner.problem.expressions import Value
from trimtuner.records import StudyView
from trimtuner.state import Limits, Money, StudyState
from trimtuner.study.owners import is_alive
from trimtuner.study.study import Study

_TAIL_BYTES = 64 * 1024
_LAST_BYTES = 4 * 1024


def subject_at(of: JobStudy) -> StudyState:
    """The study of a job, as it stands."""
    study, view = of.open_to_read()
    require_judgeable(of.job, view)
    return subject_of(of, study, view)


class Watched:
    """A study that is looked at again and again: what was read before is not read again."""

    def __init__(self, of: JobStudy) -> None:
        self.of = of
        self._study, self.view = of.open_to_read()

    def subject(self) -> StudyState:
        """The study as it stands now."""
        require_judgeable(self.of.job, self.view)
        self._study.history = self.view.history()
        return subject_of(self.of, self._study, self.view)

    def runs(self) -> int:
        """How many processes run it now."""
        return len(_alive(self.view))

    def log(self, trial: int) -> str | None:
        """The end of what the last attempt at a trial printed; nothing where there was none."""
        last = max((one.attempt for one in self.view.attempts() if one.trial == trial), default=None)
        return None if last is None else log_tail(log_of(self.of.folder / self.view.id, trial, last))


def subject_of(of: JobStudy, study: Study, view: StudyView) -> StudyState:
    """The study of a job that was opened already."""
    job, now = of.job, view.status()
    history = study.history
    alive = _alive(view)

    def command_of(config: Mapping[str, Value], fraction: float) -> tuple[str, ...]:
        return job.run.command_for(config, fraction, history.next_number)

    return StudyState(
        name=job.name,
        method=job.search.method,
        problem=study.problem,
        recipe=study.recipe,
        seed=study.seed,
        history=history,
        money=Money(now.budget, now.spent, now.reserved),
        attempts=tuple(view.attempts()),
        limits=Limits(job.budget.trials, job.budget.seconds),
        now=view.now(),
        command_of=command_of,
        log_of=partial(log_of, of.folder / view.id),
        known=study.belief_at_hand(history),
        runs=len(alive),
        unwatched=frozenset(one.trial.number for one in view.open_trials() if one.owner not in alive),
        note=note(job, differences_from(job, view)),
    )


def _alive(view: StudyView) -> set[str]:
    """The owners of trials that still live."""
    return {owner.id for owner in view.owners() if is_alive(owner)}


def log_tail(path: Path, most_bytes: int = _TAIL_BYTES) -> str:
    """The end of what a trial printed; whatever it is, it is text."""
    descriptor = open_regular(path)  # the trial may have put a link or a pipe in its place
    if descriptor is None:
        return "(there is no log here; it is on the machine that ran the trial)"
    with open(descriptor, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - most_bytes, 0))
        text = file.read(most_bytes).decode("utf-8", "replace")
    return text if size <= most_bytes else f"(the last {most_bytes // 1024} KiB of {size // 1024})\n{text}"


def last_words(of: JobStudy, study: str, trial: int, attempt: int) -> str:
    """The last line that an attempt printed, if any is at hand; whatever it is, it is text."""
    descriptor = open_regular(log_of(of.folder / study, trial, attempt))
    if descriptor is None:
        return ""
    with open(descriptor, "rb") as file:
        file.seek(max(file.seek(0, 2) - _LAST_BYTES, 0))
        lines = file.read(_LAST_BYTES).split(b"\n")
    texts = (line.decode("utf-8", "replace").strip() for line in reversed(lines))
    return next((text for text in texts if text), "")
