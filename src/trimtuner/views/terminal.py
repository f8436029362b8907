"""Views 1, 3 and 7 in the small: for a terminal, where the recommendation is words anyway."""

from __future__ import annotations

from dataclasses import dataclass

from trimtuner.problem.problem import Goal
from trimtuner.views.progress import Progress
from trimtuner.views.spend import Spend, forecast_text
from trimtuner.views.trials import Bar
from trimtuner.views.words import changed, metric, seconds, usd

_WIDTH = 40


@dataclass(frozen=True)
class Signs:
    """What pictures are made of: from low to high, and for what is spent, reserved and left."""

    levels: str
    full: str
    half: str
    empty: str


BLOCKS = Signs("▁▂▃▄▅▆▇█", "█", "▒", "░")
ASCII = Signs("_.-=+*#@", "#", "+", ".")


def signs_for(encoding: str | None) -> Signs:
    """What a terminal of that encoding can show."""
    return BLOCKS if (encoding or "ascii").lower().startswith("utf") else ASCII


def money_bar(view: Spend, signs: Signs = BLOCKS) -> str:
    """Spent, reserved and left as a bar, with the numbers behind it."""
    money = view.money
    if money.budget is None:
        return money_words(view)
    spent = min(round(_WIDTH * money.spent / money.budget), _WIDTH) if money.budget else _WIDTH
    reserved = min(round(_WIDTH * money.reserved / money.budget), _WIDTH - spent) if money.budget else 0
    bar = signs.full * spent + signs.half * reserved + signs.empty * (_WIDTH - spent - reserved)
    return f"[{bar}] {money_words(view)}"


def money_words(view: Spend) -> str:
    """Spent, reserved and left; where nothing has a price, the time that trials took."""
    money = view.money
    if not view.counts_money:
        return f"no prices are known, so no money is counted; trials took {seconds(view.seconds)}"
    left = "no budget" if money.budget is None else f"{usd(money.left or 0.0)} left of {usd(money.budget)}"
    return f"{usd(money.spent)} spent, {usd(money.reserved)} reserved, {left}"


def money_lines(view: Spend, signs: Signs = BLOCKS) -> list[str]:
    """View 1."""
    return [money_bar(view, signs), forecast_text(view)]


def progress_line(view: Progress, goal: Goal, signs: Signs = BLOCKS) -> str:
    """View 3: the quality of what was recommended, from the first cent to the last."""
    if not view.moments:
        return "nothing was recommended yet"
    values = _resampled(view)
    low, high = min(values), max(values)
    top = len(signs.levels) - 1
    heights = [round(top * (one - low) / (high - low)) if high > low else top for one in values]
    line = "".join(signs.levels[height] for height in heights)
    last = view.moments[-1]
    span = " to ".join(dict.fromkeys(metric(goal.metric, end) for end in (low, high)))
    now = metric(goal.metric, last.goal)
    return f"{goal.metric} [{line}] {span} over {last.after}; now {now}, {changed(view.changes)}"


def _resampled(view: Progress) -> list[float]:
    """The value at even steps of money; where nothing was paid, of moments."""
    last = view.moments[-1]
    if last.usd <= 0:
        return [moment.goal for moment in view.moments][-_WIDTH:]
    values, at = [], 0
    for step in range(_WIDTH):
        paid = last.usd * (step + 1) / _WIDTH
        while at + 1 < len(view.moments) and view.moments[at + 1].usd <= paid:
            at += 1
        values.append(view.moments[at].goal)
    return values


def timeline_lines(bars: tuple[Bar, ...], signs: Signs = BLOCKS, most: int = 8) -> list[str]:
    """View 7: the last attempts, those under way at the end."""
    if not bars:
        return ["no trial was started yet"]
    shown = sorted(bars, key=lambda bar: (bar.is_running, bar.end))[-most:]
    first, last = min(bar.begin for bar in shown), max(bar.end for bar in shown)
    width = 24
    lines = []
    for bar in shown:
        span = max(last - first, 1e-9)
        begin = min(int(width * (bar.begin - first) / span), width - 1)
        length = max(round(width * (bar.end - bar.begin) / span), 1)
        drawn = (" " * begin + (">" if bar.is_running else signs.full) * length)[:width].ljust(width)
        again = f" (attempt {bar.attempt})" if bar.attempt > 1 else ""
        paid = f", {usd(bar.usd)}{' reserved' if bar.is_running else ''}" if bar.usd else ""
        where = f", {bar.machines}" if bar.machines else ""
        lines.append(f"{bar.trial:>5} |{drawn}| {bar.state}{again}, {seconds(bar.end - bar.begin)}{paid}{where}")
    return lines
