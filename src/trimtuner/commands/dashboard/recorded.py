"""Studies in a record whose job files are not at hand: a line for each, with all that the record itself tells."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from trimtuner.errors import TrimTunerError
from trimtuner.problem.history import History
from trimtuner.problem.problem import Constraint, Problem, goal_of
from trimtuner.problem.space import Space
from trimtuner.records import RecordsView, StudyView
from trimtuner.records.addresses import place_of
from trimtuner.state import Money, StudyState
from trimtuner.study.owners import alive_owners
from trimtuner.tuning.recipes import recipe_named
from trimtuner.views.standing import Standing, standing_of
from trimtuner.views.words import metric, words_instead

_EARLIER = "begun by an earlier version: its page, with its job file, tells more"


@dataclass
class InRecord:
    """One study of a record, as it was looked at last."""

    name: str
    watched: StudyView
    trouble: str = ""
    standing: Standing | None = None
    looked_at: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self) -> None:
        """See how it stands; what has not changed is not read again."""
        with self.lock:
            try:
                alive = alive_owners(self.watched)
                seen = f"{self.watched.version()}, {len(alive)} runs"
                if seen != self.looked_at:
                    self.standing, self.trouble = standing_of(_state(self.watched, alive)), ""
                self.looked_at = seen
            except Exception as error:
                self.standing, self.trouble, self.looked_at = None, words_instead(error), str(error)


class RecordWatched:
    """All studies of a record: a file, or a database by its address; new ones as they come."""

    def __init__(self, place: str) -> None:
        self._records = RecordsView(place_of(place))
        self._known: dict[str, InRecord] = {}
        self.studies()  # an error here is said before anything is served

    def studies(self) -> list[InRecord]:
        """Every study, in the order in which they were found."""
        try:
            for name in self._records.names():
                if name not in self._known:
                    self._known[name] = InRecord(name, self._records.open(name))
        except TrimTunerError:
            if not self._known:
                raise
        return list(self._known.values())


def _state(view: StudyView, alive: Collection[str]) -> StudyState:
    """The study as far as its record tells: nothing of its space, which a line has no place for."""
    history, now, definition = view.history(), view.status(), view.definition
    return StudyState(
        name=view.name,
        method=str(definition.get("method", "")),
        problem=_problem(definition, history, now.budget),
        recipe=recipe_named("random"),  # which is asked for nothing
        seed=0,
        history=history,
        money=Money(now.budget, now.spent, now.reserved),
        attempts=tuple(view.attempts()),
        now=view.now(),
        runs=len(alive),
        unwatched=frozenset(one.trial.number for one in view.open_trials() if one.owner not in alive),
        why_over=view.why_over(),
        job_file="JOB",
        record=view,
    )


def _problem(definition: Mapping[str, object], history: History, budget: float | None) -> Problem:
    goal, limits = definition.get("goal"), definition.get("constraints")
    if not isinstance(goal, Mapping) or not isinstance(limits, list):
        raise TrimTunerError(_EARLIER)
    fractions = sorted({1.0, *(one.fraction for one in history.measurements)})
    space = Space.from_configs([{"configuration": "any"}], fractions=fractions)
    kept = tuple(_limits(one for one in limits if isinstance(one, Mapping)))
    return Problem(space, goal_of(goal.get("maximize"), goal.get("minimize")), kept, budget)


def _limits(told: Iterable[Mapping[str, object]]) -> Iterable[Constraint]:
    for one in told:
        name, is_upper = str(one["name"]), "at_most" in one
        limit = float(str(one["at_most" if is_upper else "at_least"]))
        yield Constraint(name, is_upper, limit, f"{name} {'<=' if is_upper else '>='} {metric(name, limit)}")
