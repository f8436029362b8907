"""The ten views by name: how each is shown, what it takes to make it, and which pictures can be had as files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trimtuner.state import StudyState
from trimtuner.views import sections
from trimtuner.views.curves import curves
from trimtuner.views.drawing.choice import curves_picture, machines_picture, tradeoff_picture
from trimtuner.views.drawing.money import progress_over_money, progress_over_time, spend_bar, spend_over_time
from trimtuner.views.drawing.work import checks_picture, importance_picture, timeline_picture
from trimtuner.views.importance import importance
from trimtuner.views.machines import NO_MACHINES, machines
from trimtuner.views.markup import sentences
from trimtuner.views.progress import progress
from trimtuner.views.spend import spend
from trimtuner.views.tradeoff import NOTHING_TO_TRADE, tradeoff
from trimtuner.views.trial_table import trials_section
from trimtuner.views.trials import timeline
from trimtuner.views.trust import trust
from trimtuner.views.words import words_instead

Effort: TypeAlias = Literal["facts", "model", "checks"]  # reads the record; fits a model; fits it again and again
EFFORTS: tuple[Effort, ...] = ("facts", "model", "checks")


@dataclass(frozen=True)
class View:
    """One view: its name in addresses, its title, its HTML, and its pictures by name."""

    name: str
    title: str
    effort: Effort
    render: Callable[[StudyState], str]
    pictures: Callable[[StudyState], dict[str, str]]
    nothing: str = "There is nothing to draw yet."  # where a model is at hand, and still there is no picture

    def html(self, subject: StudyState) -> str:
        """The view, or why it cannot be shown: one that fails takes nothing else with it."""
        try:
            return self.render(subject)
        except Exception as error:
            return sentences(words_instead(error))


def _spend(subject: StudyState) -> dict[str, str]:
    view = spend(subject)
    return {"spend": spend_over_time(view) if view.money.spent and len(view.steps) > 1 else spend_bar(view)}


def _progress(subject: StudyState) -> dict[str, str]:
    view = progress(subject)
    if not view.moments:
        return {}
    draw = progress_over_money if view.moments[-1].usd else progress_over_time
    return {"progress": draw(view, subject.problem.goal)}


def _tradeoff(subject: StudyState) -> dict[str, str]:
    view = tradeoff(subject)
    return {} if view is None else {"tradeoff": tradeoff_picture(view)}


def _curves(subject: StudyState) -> dict[str, str]:
    return {_numbered("curves", view.metric, place): curves_picture(view) for place, view in enumerate(curves(subject))}


def _machines(subject: StudyState) -> dict[str, str]:
    view = machines(subject)
    markets = () if view is None else view.markets
    return {
        _numbered("machines", market, place): machines_picture(view, market)
        for place, market in enumerate(markets)
        if view is not None
    }


def _timeline(subject: StudyState) -> dict[str, str]:
    bars = timeline(subject)
    return {"timeline": timeline_picture(bars)} if bars else {}


def _importance(subject: StudyState) -> dict[str, str]:
    found = importance(subject)
    return {"importance": importance_picture(found)} if found else {}


def _trust(subject: StudyState) -> dict[str, str]:
    return {
        _numbered("trust", name, place): checks_picture(name, checks)
        for place, (name, checks) in enumerate(trust(subject).checks.items())
    }


def _none(_subject: StudyState) -> dict[str, str]:
    return {}


def _numbered(view: str, part: str, place: int) -> str:
    """The first picture is the view's own; the others say what they are of."""
    return view if place == 0 else f"{view}-{part}"


VIEWS: tuple[View, ...] = (
    View("spend", "Spend", "facts", sections.spend_section, _spend),
    View("answer", "Recommendation", "model", sections.answer_section, _none),
    View("progress", "What the money bought", "model", sections.progress_section, _progress),
    View("tradeoff", "What can be had", "model", sections.tradeoff_section, _tradeoff, NOTHING_TO_TRADE),
    View("curves", "Learning curves", "model", sections.curves_section, _curves),
    View("machines", "Machines", "model", sections.machines_section, _machines, NO_MACHINES),
    View("timeline", "Timeline", "facts", sections.timeline_section, _timeline),
    View("trials", "Trials", "facts", trials_section, _none),
    View("importance", "What matters", "model", sections.importance_section, _importance),
    View("trust", "Can the model be trusted", "checks", sections.trust_section, _trust),
)
DRAWN: tuple[str, ...] = tuple(view.name for view in VIEWS if view.pictures is not _none)
