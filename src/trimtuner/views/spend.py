"""View 1: the money. Spent, reserved, left; and when it will be over at the present pace."""

from __future__ import annotations

from dataclasses import dataclass

from trimtuner.state import Money, StudyState
from trimtuner.views.words import seconds

_RECENT = 10  # ended trials that tell the pace


@dataclass(frozen=True)
class Forecast:
    """When the search ends if it goes on as lately; None where nothing limits it, or too little is known."""

    trials_left: float | None
    seconds_left: float | None
    by: str | None  # what runs out first: money, trials or time


@dataclass(frozen=True)
class Spend:
    """The money, how it went, and where it goes."""

    money: Money
    steps: tuple[tuple[float, float], ...]  # (seconds since the first trial was asked, USD spent by then)
    ended: int
    running: int
    mean_usd: float | None  # of the trials ended lately
    forecast: Forecast
    counts_money: bool = True
    seconds: float = 0.0  # that all ended trials took
    is_at_rest: bool = False  # no run is at work, so that nothing goes on at any pace

    @property
    def end(self) -> tuple[float, float] | None:
        """Seconds and USD at the end that is forecast; nothing where none is."""
        found = self.forecast
        if (
            self.is_at_rest
            or not self.mean_usd
            or found.trials_left is None
            or found.trials_left < 1
            or not found.seconds_left
        ):
            return None
        at, paid = self.steps[-1]
        return at + found.seconds_left, paid + found.trials_left * self.mean_usd


def spend(subject: StudyState) -> Spend:
    """The view."""
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
    )


def forecast_text(view: Spend) -> str:
    """When it will be over, in words."""
    found = view.forecast
    if found.trials_left is not None and found.trials_left < 1:
        still = f"; {view.running} still running" if view.running and not view.is_at_rest else ""
        return f"The search has used up its {found.by}{still}."
    if view.is_at_rest:
        return "No run is at work; 'trimtuner run' goes on where it stopped."
    if found.by is None or found.trials_left is None:
        return "Too little has ended to say when it will be over." if view.ended < 2 else "Nothing limits the search."
    ends = f"{found.by} {'run' if found.by == 'trials' else 'runs'} out"
    soon = "" if found.seconds_left is None else f", in about {seconds(found.seconds_left)}"
    return f"At the pace of the last trials, {ends} after about {found.trials_left:,.0f} more{soon}."


def _steps(subject: StudyState) -> tuple[tuple[float, float], ...]:
    ended = sorted((one.ended_at, one.charge) for one in subject.attempts if one.ended_at is not None and one.charge)
    if subject.attempts:
        begin = min(one.asked_at for one in subject.attempts)
        moments = [(at - begin, usd) for at, usd in ended if usd is not None]
    else:  # in memory: one trial after the other
        clock, moments = 0.0, []
        for outcome in subject.history.outcomes:
            clock += outcome.time or 0.0
            moments.append((clock, outcome.cost))
    total, steps = 0.0, [(0.0, 0.0)]
    for at, usd in moments:
        total += usd
        steps.append((at, total))
    return tuple(steps)


def _forecast(subject: StudyState, mean_usd: float | None) -> Forecast:
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
        return Forecast(None, None, None)
    by = min(left, key=lambda name: left[name])
    return Forecast(left[by], None if pace is None else left[by] * pace, by)


def _seconds_between_ends(subject: StudyState) -> float | None:
    """How often a trial ends, with as many side by side as there are."""
    ends = sorted(one.ended_at for one in subject.attempts if one.ended_at is not None)[-_RECENT - 1 :]
    if len(ends) >= 2:
        return (ends[-1] - ends[0]) / (len(ends) - 1)
    times = [outcome.time for outcome in subject.history.outcomes[-_RECENT:] if outcome.time is not None]
    return sum(times) / len(times) if times and not subject.attempts else None
