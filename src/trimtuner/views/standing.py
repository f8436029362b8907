"""How a study stands in one line, for a list of many: what is wrong first, and nothing that needs a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement
from trimtuner.state import Money, StudyState
from trimtuner.views.blocks import Block, Picture, TextTable
from trimtuner.views.drawing.chart import Chart, across, unit_of, up
from trimtuner.views.marking import mark_of
from trimtuner.views.now import is_over, troubles, why_ended
from trimtuner.views.words import count_of, metric, usd, value_text

MOST_AGAINST = 6  # studies beside each other, each with a colour of its own


@dataclass(frozen=True)
class Standing:
    """One study among others, as far as a line can tell."""

    name: str
    state: str  # at work, over, resting
    troubles: tuple[str, ...]
    best: Measurement | None  # measured within every limit, where it counts
    goal: str  # the metric
    limits: str  # whether they are kept, in words
    money: Money
    counts_money: bool
    ended: int
    failed: int
    running: int
    last_sign: float | None  # seconds since 1970
    curve: tuple[tuple[float, float], ...]  # USD spent, the best measured within the limits by then

    @property
    def best_words(self) -> str:
        """The goal of the best, in its unit; a dash where there is none."""
        return "-" if self.best is None else f"{self.goal} {metric(self.goal, self.best.metrics[self.goal])}"

    @property
    def config(self) -> Mapping[str, Value]:
        """The best configuration; nothing where there is none."""
        return {} if self.best is None else self.best.configuration


def standing_of(subject: StudyState) -> Standing:
    """How a study stands, without a model."""
    outcomes, problem = subject.history.outcomes, subject.problem
    found, curve = _best_measured(subject)
    times = [at for one in subject.attempts for at in (one.asked_at, one.started_at, one.ended_at) if at is not None]
    state = f"{count_of(subject.runs or 0, 'run')} at work" if subject.runs else _at_rest(subject)
    kept = "kept" if found is not None else "nothing measured keeps them yet"
    return Standing(
        name=subject.name,
        state=state,
        troubles=tuple(troubles(subject)),
        best=found,
        goal=problem.goal.metric,
        limits=kept if problem.constraints else "none",
        money=subject.money,
        counts_money=subject.counts_money,
        ended=len(outcomes),
        failed=sum(one.is_fault and not one.is_over_limit for one in outcomes),
        running=len(subject.history.pending),
        last_sign=max(times, default=None),
        curve=curve,
    )


def _at_rest(subject: StudyState) -> str:
    """Why no run is at work, as far as a word tells."""
    if not is_over(subject):
        return "at rest"
    why = why_ended(subject)
    return f"over: {why}" if why else "over"


def _best_measured(subject: StudyState) -> tuple[Measurement | None, tuple[tuple[float, float], ...]]:
    """The best within the limits where it counts, and its goal as the money was spent."""
    problem, best, spent = subject.problem, None, 0.0
    goal, curve = problem.goal, []
    for outcome in subject.history.outcomes:
        spent += outcome.cost
        for one in outcome.measurements:
            is_within = all(c.is_met(one.metrics[c.metric]) for c in problem.constraints if c.metric in one.metrics)
            is_better = best is None or goal.sign * one.metrics[goal.metric] > goal.sign * best.metrics[goal.metric]
            if one.fraction in problem.target_fractions and is_within and is_better:
                best = one
                curve.append((spent, one.metrics[goal.metric]))
    if best is not None:
        curve.append((spent, best.metrics[goal.metric]))
    return best, tuple(curve)


def against(studies: Sequence[Standing]) -> list[Block]:
    """Studies against each other: how each stands, what their best configurations are, and what money bought."""
    lines = [
        ["state", *(one.state for one in studies)],
        ["best measured within the limits", *(one.best_words for one in studies)],
        ["limits", *(one.limits for one in studies)],
        ["spent", *(usd(one.money.spent) if one.counts_money else "not counted" for one in studies)],
        ["budget", *("none" if one.money.budget is None else usd(one.money.budget) for one in studies)],
        ["trials ended", *(str(one.ended) for one in studies)],
        ["of them failed", *(str(one.failed) for one in studies)],
        ["running", *(str(one.running) for one in studies)],
    ]
    for name in dict.fromkeys(name for one in studies for name in one.config):
        lines.append([name, *(value_text(one.config[name]) if name in one.config else "-" for one in studies)])
    blocks: list[Block] = [TextTable(["", *(one.name for one in studies)], lines, "answer")]
    goals = {one.goal for one in studies if one.curve}
    if len(goals) != 1:
        return [*blocks, "Their goals differ, or nothing was measured within the limits: there is no curve to compare."]
    return [*blocks, _curves(studies, goals.pop())]


def _curves(studies: Sequence[Standing], goal: str) -> Picture:
    points = [point for one in studies for point in one.curve]
    words = f"{goal} of the best measured within the limits, against the money spent"
    x, y = across([0.0, *(paid for paid, _ in points)]), up([value for _, value in points], from_zero=0.2)
    chart = Chart(x, y, "USD spent", f"{goal}{unit_of(goal)}", words)
    for number, one in enumerate(studies):
        chart.steps(list(one.curve), f"series{number}")
        if one.best is not None:
            paid, value = one.curve[-1]
            mark = mark_of(one.config, one.name, f"{goal} {metric(goal, value)} after {usd(paid)}")
            chart.dot(paid, value, f"series{number}", mark)
    table = [[one.name, f"{paid:.6g}", f"{value:.6g}"] for one in studies for paid, value in one.curve]
    marks = [(f"line series{number}", one.name) for number, one in enumerate(studies)]
    return Picture(chart.svg(), marks, words, "against", TextTable(["study", "USD spent", goal], table, "data"))
