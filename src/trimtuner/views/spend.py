"""The money: spent, reserved, left; and when it will be over at the present pace."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from trimtuner.state import Money, StudyState
from trimtuner.views.blocks import Block, Drawn, Facts, Picture, TextTable, View
from trimtuner.views.drawing.chart import RIGHT, Chart, across, drawn, time_unit, up
from trimtuner.views.drawing.marks import Mark
from trimtuner.views.drawing.svg import text
from trimtuner.views.words import BLOCKS, Signs, cell, seconds, usd, usd_together, why_over

_RECENT = 10  # ended trials that tell the pace
_STEPS_DRAWN = 600
_NEAR = 4.0  # times what is spent: a cap farther away would press the line to the ground
_LETTERS = 40  # of the bar in a terminal
_WIDTH = 560  # beside the answer
_PARTS = (("part spent", "spent"), ("part reserved", "reserved for running trials"), ("part left", "left"))


@dataclass(frozen=True)
class Forecast:
    """When the search ends if it goes on as lately."""

    by: str  # what runs out first: money, trials or time
    trials_left: float
    seconds_left: float | None  # None: too little has ended to tell the pace


@dataclass(frozen=True)
class Spend:
    """The money, how it went, and where it goes."""

    money: Money
    steps: tuple[tuple[float, float], ...]  # (seconds since the first trial was asked, USD spent by then)
    ended: int
    running: int
    mean_usd: float | None  # of the trials ended lately
    forecast: Forecast | None  # None: nothing limits it, or too little is known
    counts_money: bool = True
    seconds: float = 0.0  # that all ended trials took
    is_at_rest: bool = False  # no run is at work, so that nothing goes on at any pace
    why_over: str = ""  # as the last run said it

    @property
    def end(self) -> tuple[float, float] | None:
        """Seconds and USD at the end that is forecast; nothing where none is."""
        found = self.forecast
        if self.is_at_rest or found is None or found.trials_left < 1 or not (self.mean_usd and found.seconds_left):
            return None
        at, paid = self.steps[-1]
        return at + found.seconds_left, paid + found.trials_left * self.mean_usd


def spend(subject: StudyState) -> Spend:
    """The money of a study and its pace."""
    recent = subject.history.outcomes[-_RECENT:]
    mean_usd = sum(outcome.cost for outcome in recent) / len(recent) if recent else None
    return Spend(
        money=subject.money,
        steps=_steps(subject),
        ended=len(subject.history.outcomes),
        running=len(subject.history.pending),
        mean_usd=mean_usd,
        forecast=_forecast(subject, mean_usd),
        counts_money=subject.counts_money,
        seconds=sum(outcome.time or 0.0 for outcome in subject.history.made),
        is_at_rest=subject.runs == 0,
        why_over=subject.why_over,
    )


def forecast_text(view: Spend) -> str:
    """When it will be over, in words."""
    found = view.forecast
    if found is not None and found.trials_left < 1:
        still = f"; {view.running} still running" if view.running and not view.is_at_rest else ""
        return f"The search has used up its {found.by}{still}."
    if view.is_at_rest and view.why_over:
        return f"No run is at work; the last one ended: {why_over(view.why_over)}."
    if view.is_at_rest:
        return "No run is at work; 'trimtuner run' goes on where it stopped."
    if found is None:
        return "Too little has ended to say when it will be over." if view.ended < 2 else "Nothing limits the search."
    ends = f"{found.by} {'run' if found.by == 'trials' else 'runs'} out"
    soon = "" if found.seconds_left is None else f", in about {seconds(found.seconds_left)}"
    return f"At the pace of the last trials, {ends} after about {found.trials_left:,.0f} more{soon}."


def money_bar(view: Spend, signs: Signs = BLOCKS) -> str:
    """Spent, reserved and left as a bar, with the numbers behind it."""
    money = view.money
    if money.budget is None:
        return money_words(view)
    spent = min(round(_LETTERS * money.spent / money.budget), _LETTERS) if money.budget else _LETTERS
    reserved = min(round(_LETTERS * money.reserved / money.budget), _LETTERS - spent) if money.budget else 0
    bar = signs.full * spent + signs.half * reserved + signs.empty * (_LETTERS - spent - reserved)
    return f"[{bar}] {money_words(view)}"


def money_words(view: Spend) -> str:
    """Spent, reserved and left; where nothing has a price, the time that trials took."""
    money = view.money
    if not view.counts_money:
        return f"no prices are known, so no money is counted; trials took {seconds(view.seconds)}"
    told = usd_together(money.spent, money.reserved, money.left or 0.0, money.budget or 0.0)
    left = "no budget" if money.budget is None else f"{told[2]} left of {told[3]}"
    return f"{told[0]} spent, {told[1]} reserved, {left}"


def money_lines(view: Spend, signs: Signs = BLOCKS) -> list[str]:
    """The bar, and when it will be over."""
    return [money_bar(view, signs), forecast_text(view)]


def _steps(subject: StudyState) -> tuple[tuple[float, float], ...]:
    if subject.attempts:
        begin = min(one.asked_at for one in subject.attempts)
        found = ((one.ended_at, one.charge) for one in subject.attempts)
        ends = sorted((at - begin, charge) for at, charge in found if at is not None and charge)
    else:  # in memory: one trial after the other
        outcomes = subject.history.outcomes
        times = accumulate(outcome.time or 0.0 for outcome in outcomes)
        ends = [(at, outcome.cost) for at, outcome in zip(times, outcomes, strict=True)]
    paid = accumulate((charge for _, charge in ends), initial=0.0)
    return tuple(zip((0.0, *(at for at, _ in ends)), paid, strict=True))


def _forecast(subject: StudyState, mean_usd: float | None) -> Forecast | None:
    left: dict[str, float] = {}
    if subject.money.left is not None and mean_usd:
        left["money"] = subject.money.left / mean_usd
    if subject.limits.trials is not None:
        asked = len(subject.history.counted) + len(subject.history.pending)
        left["trials"] = float(max(subject.limits.trials - asked, 0))
    pace = _seconds_between_ends(subject)
    if subject.limits.seconds is not None and pace:
        used = sum(outcome.time or 0.0 for outcome in subject.history.made)
        each = used / max(len(subject.history.made), 1)
        left["time"] = max(subject.limits.seconds - used, 0.0) / each if each else 0.0
    if not left:
        return None
    by = min(left, key=lambda name: left[name])
    return Forecast(by, left[by], None if pace is None else left[by] * pace)


def _seconds_between_ends(subject: StudyState) -> float | None:
    """How often a trial ends, with as many side by side as there are."""
    ends = sorted(one.ended_at for one in subject.attempts if one.ended_at is not None)[-_RECENT - 1 :]
    if len(ends) >= 2:
        return (ends[-1] - ends[0]) / (len(ends) - 1)
    times = [outcome.time for outcome in subject.history.outcomes[-_RECENT:] if outcome.time is not None]
    return sum(times) / len(times) if times and not subject.attempts else None


def _blocks(subject: StudyState) -> list[Block]:
    view = spend(subject)
    has_steps = view.money.spent > 0 and len(view.steps) > 1
    name = None if has_steps else "spend"
    bar = Picture(_bar(view), _PARTS, name=name, table=_parts(view), is_shown=view.counts_money)
    money = Drawn([Facts(_facts(view)), bar], [money_bar(view)])
    told = "Each step is a trial that ended and was charged"
    told = f"{told}; the dashed line goes on at the present pace." if view.end is not None else f"{told}."
    over_time = [Picture(_over_time(view), (), told, "spend", _table(view))] if has_steps else []
    return [money, forecast_text(view), *over_time]


def _parts(view: Spend) -> TextTable:
    """The parts of the bar, in numbers."""
    money = view.money
    named = {"spent": money.spent, "reserved": money.reserved, "left": money.left, "budget": money.budget}
    return TextTable(["part", "USD"], [[name, cell(one)] for name, one in named.items() if one is not None], "data")


def _table(view: Spend) -> TextTable:
    """The steps, in numbers."""
    return TextTable(["seconds", "USD spent"], [[cell(at), cell(paid)] for at, paid in _drawn_steps(view)], "data")


def _drawn_steps(view: Spend) -> list[tuple[float, float]]:
    """As many steps as anybody can tell apart, the last among them."""
    every = -(-len(view.steps) // _STEPS_DRAWN)
    return [*view.steps[:-1:every], view.steps[-1]]


def _in_notebook(subject: StudyState) -> list[Block]:
    view = spend(subject)
    return [f"{money_bar(view)}; {view.ended} trials ended, {view.running} running"]


def _facts(view: Spend) -> dict[str, str]:
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


def _bar(view: Spend) -> str:
    """Spent, reserved and left, as parts of the budget."""
    money = view.money
    whole = money.budget or money.spent + money.reserved or 1.0
    room, top, height = _WIDTH - 2.0 * RIGHT, 4.0, 22.0
    parts, at = [], float(RIGHT)
    for amount, kind in ((money.spent, "spent"), (money.reserved, "reserved"), (money.left or 0.0, "left")):
        width = room * min(amount / whole, 1.0)
        size = {"x": at, "y": top, "width": width, "height": height}
        parts.append(Mark(f"{usd(amount)} {kind}").drawn("rect", **size, class_=f"part {kind}"))
        at += width
    cap = usd(money.budget) if money.budget is not None else "no budget"
    parts.append(text("0", RIGHT, top + height + 14, "tick", "middle"))
    parts.append(text(cap, _WIDTH - RIGHT, top + height + 14, "tick", "end"))
    return drawn(_WIDTH, 46, f"{usd(money.spent)} spent, {usd(money.reserved)} reserved, of {cap}", "".join(parts))


def _over_time(view: Spend) -> str:
    """The money spent as time passed, on to the end that is forecast, with the cap where it is near."""
    ends = [] if view.end is None else [view.end]
    unit, name = time_unit(max(at for at, _ in (*view.steps, *ends)))
    spent = [(at / unit, paid) for at, paid in _drawn_steps(view)]
    ahead = [spent[-1], *((at / unit, paid) for at, paid in ends)]
    most = max(paid for _, paid in (*spent, *ahead))
    budget = view.money.budget
    near = [] if budget is None or budget > _NEAR * most else [budget]
    x, y = across([at for at, _ in (*spent, *ahead)], width=_WIDTH), up([0.0, most, *near], 190)
    chart = Chart(x, y, f"{name} since the first trial", "USD spent", "Money spent over time")
    for cap in near:
        chart.level(cap, "limit", f"budget {usd(cap)}")
    chart.steps(spent, "spent")
    chart.line(ahead, "spent forecast")
    return chart.svg()


VIEW = View("spend", "Spend", "glance", _blocks, in_notebook=_in_notebook)
