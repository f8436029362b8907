"""The views as pieces of HTML: words first, then the picture, with numbers beside every colour."""

from __future__ import annotations

from trimtuner.state import StudyState
from trimtuner.views.answer import answers
from trimtuner.views.curves import curves
from trimtuner.views.drawing.choice import curves_picture, legend_of, machines_picture, tradeoff_picture
from trimtuner.views.drawing.money import progress_over_money, progress_over_time, spend_bar, spend_over_time
from trimtuner.views.drawing.work import (
    BARS_SHOWN,
    calibration_picture,
    checks_picture,
    importance_picture,
    timeline_picture,
)
from trimtuner.views.importance import importance
from trimtuner.views.machines import NO_MACHINES, machines
from trimtuner.views.markup import code, facts, figure, folded, legend, pickable, sentences, table
from trimtuner.views.progress import progress
from trimtuner.views.spend import Spend, forecast_text, spend
from trimtuner.views.tables import Table, answer_table, calibration_table, changes_table, front_table
from trimtuner.views.tradeoff import FEASIBLE, NOTHING_TO_TRADE, Tradeoff, tradeoff
from trimtuner.views.trials import counts_by_state, timeline
from trimtuner.views.trust import Trust, trust
from trimtuner.views.words import changed, count_of, metric, seconds, sentence, usd

_MONEY = (("part spent", "spent"), ("part reserved", "reserved for running trials"), ("part left", "left"))
_POINTS = (
    ("diamond recommended", "recommended (diamond)"),
    ("dot tested likely", "measured, meets the limits"),
    ("dot predicted likely", "predicted, likely to (hollow)"),
    ("dot tested unlikely", "measured, breaks one (grey)"),
    ("dot predicted unlikely", "predicted, unlikely to (grey, hollow)"),
    ("line front", "Pareto front"),
)
_STATES = (
    ("bar done", "ended well"),
    ("bar failed", "failed"),
    ("bar preempted", "pre-empted"),
    ("bar running", "running"),
)


def spend_section(subject: StudyState) -> str:
    """View 1."""
    view = spend(subject)
    bar = figure(spend_bar(view), legend(_MONEY)) if view.counts_money else ""
    parts = [facts(_money_facts(view)), bar, sentences(forecast_text(view))]
    if view.money.spent and len(view.steps) > 1:
        parts.append(figure(spend_over_time(view), caption=_steps_caption(view)))
    return "".join(parts)


def answer_section(subject: StudyState) -> str:
    """View 2."""
    view = answers(subject)
    if view.best is None:
        return sentences(subject.note, *view.why)
    parts = [
        sentences(subject.note),
        _listed(answer_table(view), "answer"),
        "<h3>Why this one</h3>",
        sentences(*view.why),
    ]
    if view.best.command is not None:
        parts += ["<h3>Train it with</h3>", code(view.best.command)]
    return "".join(parts)


def progress_section(subject: StudyState) -> str:
    """View 3."""
    view, goal = progress(subject), subject.problem.goal
    if not view.moments:
        return sentences(subject.why_no_model or "")
    last = view.moments[-1]
    lead = (
        f"Now {goal.metric} {metric(goal.metric, last.goal)} after {last.after}; the recommendation "
        f"{changed(view.changes)}. Each value is what is known now of what was recommended then."
    )
    marks = legend(
        [("dot change likely", "another configuration"), ("dot change unlikely", "one unlikely to meet the limits")]
    )
    listed = _listed(changes_table(view, goal))
    over_time = figure(progress_over_time(view, goal), marks)
    over_money = figure(progress_over_money(view, goal), marks) + folded("Against time", over_time)
    return f"{sentences(lead)}{over_money if last.usd else over_time}{folded('The changes', listed)}"


def tradeoff_section(subject: StudyState) -> str:
    """View 4."""
    view = tradeoff(subject)
    if view is None:
        return sentences(subject.why_no_model or NOTHING_TO_TRADE)
    feasible = sum(point.chance >= FEASIBLE for point in view.points)
    front = sum(point.is_on_front for point in view.points)
    lead = (
        f"{feasible:,} of the {count_of(len(view.points), 'configuration')} shown {_likely(subject)}; of these, "
        f"{front:,} cannot be beaten in both by another{_knee(view)}. Pick a point (click, or focus the picture and "
        "use the arrow keys) to see its configuration."
    )
    left_out = f" {view.left_out:,} of less interest are not drawn." if view.left_out else ""
    elsewhere = [c.text for c in subject.problem.constraints if c.metric not in (view.x_metric, view.y_metric)]
    left_out += f" Neither axis shows {' and '.join(elsewhere)}, but it counts." if elsewhere else ""
    name = f"{view.y_metric} against {view.x_metric}"
    return (
        f"{sentences(lead + left_out)}{pickable(tradeoff_picture(view), name, legend(_POINTS))}"
        f"{folded('The front as a table', _listed(front_table(view)))}"
    )


def curves_section(subject: StudyState) -> str:
    """View 5."""
    found = curves(subject)
    if not found:
        return sentences(subject.why_no_model or "")
    lead = "Points are measured; lines are the model's mean, and the band its 90 % interval for what is recommended."
    parts = [sentences(lead)]
    marks = legend(legend_of(found[0]))
    for place, view in enumerate(found):
        parts.append(figure(curves_picture(view), marks if place == len(found) - 1 else ""))
    return "".join(parts)


def machines_section(subject: StudyState) -> str:
    """View 6."""
    view = machines(subject)
    if view is None:
        return sentences(subject.why_no_model or NO_MACHINES)
    lead = (
        "The number in a cell, and its colour, is the chance that the best configuration on these machines meets the "
        "limits; a dot means that they were tested, the frame is what is recommended."
    )
    parts = [sentences(lead)]
    for market in view.markets:
        caption = market.replace("_", " ") if len(view.markets) > 1 else ""
        parts.append(figure(machines_picture(view, market), caption=caption))
    return "".join(parts)


def timeline_section(subject: StudyState) -> str:
    """View 7: the last attempts, on their machines, with their money."""
    bars = timeline(subject)
    if not bars:
        return sentences("No trial was started yet.")
    kinds = ", ".join(f"{count} {state}" for state, count in counts_by_state(bars).items())
    lead = f"{count_of(len(bars), 'attempt')} at trials: {kinds}."
    last = f" The last {BARS_SHOWN} are drawn." if len(bars) > BARS_SHOWN else ""
    return f"{sentences(lead + last)}{figure(timeline_picture(bars), legend(_STATES))}"


def importance_section(subject: StudyState) -> str:
    """View 9."""
    found = importance(subject)
    if not found:
        return sentences(subject.why_no_model or "")
    most = [
        f"{one.metric} depends most on {one.shares[0][0]} ({100 * one.shares[0][1]:.0f} %)"
        for one in found
        if one.shares and one.shares[0][1] > 0
    ]
    lead = (
        "The share of the variation between configurations, on all of the data, that each parameter explains by "
        "itself, as the model sees it; the rest they explain together."
    )
    said = sentence(f"{'; '.join(most)}.") if most else "As far as is known, no parameter matters."
    marks = legend([(f"bar series{place}", one.metric) for place, one in enumerate(found)])
    return f"{sentences(lead, said)}{figure(importance_picture(found), marks)}"


def trust_section(subject: StudyState) -> str:
    """View 10."""
    view = trust(subject)
    parts = ["<h3>Stop rule</h3>", sentences(view.stop), "<h3>Predicted against measured</h3>"]
    if view.note:
        return "".join([*parts, sentences(view.note)])
    lead = (
        "Each measurement is predicted by a model that has not seen its trial; on the line is right, bars are 90 % "
        "intervals, and hollow is outside its interval."
    )
    return "".join([*parts, sentences(lead), f"<div class='side'>{''.join(_checks(view))}</div>", _calibration(view)])


def _money_facts(view: Spend) -> dict[str, str]:
    money = view.money
    named = {"time in trials": seconds(view.seconds)}
    if view.counts_money:
        named = {"spent": usd(money.spent), "reserved": usd(money.reserved)}
    if money.left is not None and money.budget is not None:
        named |= {"left": usd(money.left), "budget": usd(money.budget)}
    named |= {"trials ended": f"{view.ended:,}", "running": str(view.running)}
    if view.mean_usd is not None and view.counts_money:
        named["a trial, lately"] = usd(view.mean_usd)
    return named


def _steps_caption(view: Spend) -> str:
    told = "Each step is a trial that ended and was charged"
    return f"{told}; the dashed line goes on at the present pace." if view.end is not None else f"{told}."


def _checks(view: Trust) -> list[str]:
    found = []
    for name, checks in view.checks.items():
        held = 100 * (view.coverage(name) or 0.0)
        words = f"The 90 % intervals of {name} held {held:.0f} % of {count_of(len(checks), 'measurement')}."
        found.append(figure(checks_picture(name, checks), caption=words))
    return found


def _calibration(view: Trust) -> str:
    if not view.calibration:
        return ""
    words = "How often a limit held, by the probability that was said; on the line is right."
    listed = _listed(calibration_table(view))
    picture = figure(calibration_picture(view), caption=words)
    return f"<h3>Calibration of the limits</h3><div class='side'>{picture}<div>{listed}</div></div>"


def _likely(subject: StudyState) -> str:
    return "are likely to meet the limits" if subject.problem.constraints else "are likely to run"


def _knee(view: Tradeoff) -> str:
    """Such as ``, and their knee is at 0.03 USD and accuracy 0.95``."""
    if view.knee is None or view.knee.on_front is None:
        return ""
    price, quality = view.knee.on_front
    told = f"{view.x_metric} {metric(view.x_metric, price)} and {view.y_metric} {metric(view.y_metric, quality)}"
    return f" (what is predicted counts with the unfavourable ends of its 90 % intervals); the knee is at {told}"


def _listed(found: Table, class_: str = "plain") -> str:
    return table(found.heads, found.lines, class_)
