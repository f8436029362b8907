"""The one list of views, in the order in which they are shown: report, page, Markdown, notebook and files follow it."""

from __future__ import annotations

from trimtuner.views import (
    answer,
    curves,
    effects,
    importance,
    machines,
    now,
    parallel,
    progress,
    speed,
    spend,
    timeline,
    tradeoff,
    trials,
    trust,
    within,
)
from trimtuner.views.blocks import View

VIEWS: tuple[View, ...] = (
    answer.VIEW,
    spend.VIEW,
    now.VIEW,
    tradeoff.VIEW,
    progress.VIEW,
    parallel.VIEW,
    machines.VIEW,
    speed.VIEW,
    importance.VIEW,
    effects.VIEW,
    curves.VIEW,
    within.VIEW,
    timeline.VIEW,
    trials.VIEW,
    trust.VIEW,
)


def drawn_views() -> tuple[str, ...]:
    """The names of those whose pictures can be had as files."""
    return tuple(view.name for view in VIEWS if view.is_drawn)
