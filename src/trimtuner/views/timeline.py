"""When and on which machines every attempt at a trial ran, how it ended and what it cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from trimtuner.problem.history import PREEMPTED, Trial
from trimtuner.records import Attempt
from trimtuner.records.facts import REPEATED
from trimtuner.state import StudyState
from trimtuner.views.blocks import Block, Drawn, Picture, View
from trimtuner.views.drawing.chart import LEFT, WIDTH, cut, drawn, time_unit
from trimtuner.views.drawing.scales import Scale, tick_text
from trimtuner.views.drawing.svg import element, path_of, text, title
from trimtuner.views.words import BLOCKS, Signs, count_of, machines, seconds, usd

RUNNING, DONE = "running", "ok"
WAITING = "waiting"  # handed in, and not begun: in the queue of a cluster
UNWATCHED = "unwatched"  # its run is gone; it goes on until its time-out, or until another run takes it over
UNCOLLECTED = "uncollected"  # its run is gone and its time-out has passed: the next run will tell how it ended
_SHOWN = 60  # the last ones
_LINE, _TOP = 16, 10
_WORDS_LETTERS = 44
_STATES = (
    ("bar done", "ended well"),
    ("bar failed", "failed"),
    ("bar preempted", "pre-empted"),
    ("bar running", "running"),
)


@dataclass(frozen=True)
class Bar:
    """One attempt at a trial, from its start to its end. Seconds are since the first trial was asked."""

    trial: int
    attempt: int
    begin: float
    end: float
    is_running: bool
    machines: str | None
    state: str  # ok, running (or waiting, unwatched, uncollected), or the kind of failure
    usd: float  # charged; of one under way, what is reserved


def timeline(subject: StudyState) -> tuple[Bar, ...]:
    """A bar for every attempt, in the order in which they were made."""
    trials = {trial.number: trial for trial in subject.trials}
    if not subject.attempts:
        return tuple(_bars_of_memory(subject))
    begin = min(one.asked_at for one in subject.attempts)
    return tuple(_bar(subject, trials[one.trial], one, begin) for one in subject.attempts if one.trial in trials)


def _bar(subject: StudyState, trial: Trial, one: Attempt, begin: float) -> Bar:
    is_running = one.ended_at is None
    start = one.started_at or one.asked_at
    end = _due(subject, one) if one.ended_at is None else one.ended_at
    return Bar(
        trial=one.trial,
        attempt=one.attempt,
        begin=max(start - begin, 0.0),
        end=max(end - begin, start - begin, 0.0),
        is_running=is_running,
        machines=machines(trial.config),
        state=state_of_open(subject, one) if is_running else _how_it_ended(one),
        usd=one.reserve if one.charge is None else one.charge,
    )


def _how_it_ended(one: Attempt) -> str:
    return DONE if one.failed in (None, REPEATED) else one.failed


def state_of_open(subject: StudyState, one: Attempt | None) -> str:
    """How a trial stands that has not ended: running, or what is known of it where its run is gone."""
    if one is None or one.trial not in subject.unwatched:
        return WAITING if one is not None and one.trial in subject.waiting else RUNNING
    return UNCOLLECTED if _due(subject, one) < subject.now else UNWATCHED


def _due(subject: StudyState, one: Attempt) -> float:
    """Until when an attempt that nobody saw the end of can have run: until now, or to its limit."""
    limit = subject.problem.trial_limit
    if limit is None or one.trial not in subject.unwatched:
        return subject.now
    return min(subject.now, (one.started_at or one.asked_at) + limit)


def _bars_of_memory(subject: StudyState) -> list[Bar]:
    """One trial after the other, since nobody wrote down when."""
    clock, bars = 0.0, []
    for outcome in subject.history.outcomes:
        end, trial = clock + (outcome.time or 0.0), outcome.trial
        state = outcome.failure or DONE
        bars.append(Bar(trial.number, 1, clock, end, False, machines(trial.config), state, outcome.cost))
        clock = end
    return bars


def timeline_lines(bars: tuple[Bar, ...], signs: Signs = BLOCKS, most: int = 8) -> list[str]:
    """The last attempts, those under way at the end."""
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


def _blocks(subject: StudyState) -> list[Block]:
    bars = timeline(subject)
    if not bars:
        return []
    kinds = ", ".join(f"{count} {state}" for state, count in Counter(bar.state for bar in bars).most_common())
    last = f" The last {_SHOWN} are drawn." if len(bars) > _SHOWN else ""
    lead = f"{count_of(len(bars), 'attempt')} at trials: {kinds}."
    return [Drawn([lead + last, Picture(_picture(bars), _STATES, name="timeline")], [lead])]


def _picture(bars: tuple[Bar, ...]) -> str:
    """A line for each attempt, the last ones; the words beside it say what its colour says."""
    shown = bars[-_SHOWN:]
    first = 0.0 if len(shown) == len(bars) else min(bar.begin for bar in shown)
    last = max(bar.end for bar in shown)
    unit, name = time_unit(last)
    room = 300  # for the words at the right
    scale = Scale(first, max(last, first + 1e-9), LEFT, WIDTH - room)
    height = _TOP + _LINE * len(shown) + 40
    ticks = Scale(first / unit, max(last, first + 1e-9) / unit, LEFT, WIDTH - room).ticks(5)
    parts = []
    for tick in ticks:
        at = scale(tick * unit)
        parts.append(element("path", d=path_of([(at, _TOP - 4), (at, height - 36)]), class_="grid"))
        parts.append(text(tick_text(tick, ticks), at, height - 22, "tick", "middle"))
    parts.append(text(f"{name} since the first trial", (LEFT + WIDTH - room) / 2, height - 6, "label", "middle"))
    parts += [_bar_picture(bar, scale, _TOP + _LINE * line) for line, bar in enumerate(shown)]
    return drawn(WIDTH, height, f"The last {len(shown)} attempts at trials over time", "".join(parts))


def _bar_picture(bar: Bar, scale: Scale, top: float) -> str:
    kind = "running" if bar.is_running else {DONE: "done", PREEMPTED: "preempted"}.get(bar.state, "failed")
    begin, end = scale(bar.begin), scale(bar.end)
    again = f" (attempt {bar.attempt})" if bar.attempt > 1 else ""
    paid = f"{usd(bar.usd)}{' reserved' if bar.is_running else ''}" if bar.usd else ""
    where, lasted = bar.machines or "this machine", seconds(bar.end - bar.begin)
    told = ", ".join(part for part in (f"trial {bar.trial}{again}: {bar.state}", lasted, paid, f"on {where}") if part)
    words = cut(", ".join(part for part in (bar.state, paid, bar.machines) if part), _WORDS_LETTERS)
    return element(
        "g",
        title(told),
        text(f"{bar.trial}{'*' * (bar.attempt - 1)}", LEFT - 6, top + 11, "tick", "end"),
        element("rect", x=begin, y=top + 1, width=max(end - begin, 2.0), height=_LINE - 4, class_=f"bar {kind}"),
        text(words, max(end, begin + 2.0) + 5, top + 11, "tick"),
        data_trial=str(bar.trial),
    )


VIEW = View("timeline", "Timeline", "facts", _blocks, nothing="No trial was started yet.")
