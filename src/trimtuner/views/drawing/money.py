"""Pictures of views 1 and 3: the money, and what it has bought so far."""

from __future__ import annotations

from trimtuner.problem.problem import Goal
from trimtuner.views.drawing.chart import RIGHT, WIDTH, Chart, across, drawn, unit_of, up
from trimtuner.views.drawing.svg import element, text, title
from trimtuner.views.progress import Progress
from trimtuner.views.spend import Spend
from trimtuner.views.words import chance, configuration, metric, usd

_STEPS_DRAWN = 600
_NEAR = 4.0  # times what is spent: a cap farther away would press the line to the ground


def spend_bar(view: Spend) -> str:
    """Spent, reserved and left, as parts of the budget."""
    money = view.money
    whole = money.budget or money.spent + money.reserved or 1.0
    room, top, height = WIDTH - 2.0 * RIGHT, 4.0, 26.0
    parts, at = [], float(RIGHT)
    for amount, kind in ((money.spent, "spent"), (money.reserved, "reserved"), (money.left or 0.0, "left")):
        width = room * min(amount / whole, 1.0)
        words = title(f"{usd(amount)} {kind}")
        parts.append(element("rect", words, x=at, y=top, width=width, height=height, class_=f"part {kind}"))
        at += width
    cap = usd(money.budget) if money.budget is not None else "no budget"
    parts.append(text("0", RIGHT, top + height + 14, "tick", "middle"))
    parts.append(text(cap, WIDTH - RIGHT, top + height + 14, "tick", "end"))
    return drawn(WIDTH, 52, f"{usd(money.spent)} spent, {usd(money.reserved)} reserved, of {cap}", "".join(parts))


def spend_over_time(view: Spend) -> str:
    """The money spent as time passed, on to the end that is forecast, with the cap where it is near."""
    ends = [] if view.end is None else [view.end]
    unit, name = time_unit(max(at for at, _ in (*view.steps, *ends)))
    every = -(-len(view.steps) // _STEPS_DRAWN)
    spent = [(at / unit, paid) for at, paid in (*view.steps[:-1:every], view.steps[-1])]
    ahead = [spent[-1], *((at / unit, paid) for at, paid in ends)]
    most = max(paid for _, paid in (*spent, *ahead))
    budget = view.money.budget
    is_near = budget is not None and budget <= _NEAR * most
    top = [most, *([budget] if is_near and budget is not None else [])]
    chart = Chart(
        across([at for at, _ in (*spent, *ahead)]),
        up([0.0, *top], height=240),
        f"{name} since the first trial",
        "USD spent",
        "Money spent over time",
        height=240,
    )
    if is_near and budget is not None:
        chart.level(budget, "limit", f"budget {usd(budget)}")
    chart.steps(spent, "spent")
    chart.line(ahead, "spent forecast")
    return chart.svg()


def progress_over_money(view: Progress, goal: Goal) -> str:
    """The recommendation's quality against USD."""
    return _progress(view, goal, [moment.usd for moment in view.moments], "USD spent", "against the money spent")


def progress_over_time(view: Progress, goal: Goal) -> str:
    """The recommendation's quality against time."""
    unit, name = time_unit(max((moment.seconds for moment in view.moments), default=1.0))
    at = [moment.seconds / unit for moment in view.moments]
    return _progress(view, goal, at, f"{name} since the first trial", "against the time passed")


def _progress(view: Progress, goal: Goal, at: list[float], x_label: str, name: str) -> str:
    values = [moment.goal for moment in view.moments]
    chart = Chart(
        across([0.0, *at]),
        up(values, height=280, from_zero=0.2),
        x_label,
        f"{goal.metric}{unit_of(goal.metric)}, as known now",
        f"{goal.metric} of what was recommended, {name}",
        height=280,
    )
    chart.steps(list(zip(at, values, strict=True)), "series0")
    for place, moment in zip(at, view.moments, strict=True):
        if moment.is_change:
            kind = "likely" if moment.chance >= 0.5 else "unlikely"
            told = (
                f"from trial {moment.trial}, after {moment.after}: {configuration(moment.config)}; {goal.metric} "
                f"{metric(goal.metric, moment.goal)}, P(limits) {chance(moment.chance)}"
            )
            chart.dot(place, moment.goal, f"change {kind}", told)
    return chart.svg()


def time_unit(longest: float) -> tuple[float, str]:
    """Seconds of the unit that suits so long a time, and its name."""
    for unit, name in ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if longest >= 2 * unit:
            return unit, name
    return 1.0, "seconds"
