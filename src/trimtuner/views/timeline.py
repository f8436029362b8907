"""When and on which machines every attempt at a trial ran, how it ended and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from trimtuner.problem.expressions import Value
from trimtuner.problem.history import PREEMPTED, Trial
from trimtuner.records import Attempt
from trimtuner.records.facts import REPEATED
from trimtuner.state import StudyState
from trimtuner.views.blocks import Block, Drawn, Picture, TextTable, View
from trimtuner.views.drawing.chart import RIGHT, TOP, Chart, cut, room_for, time_unit
from trimtuner.views.drawing.scales import Scale, scale_for
from trimtuner.views.drawing.svg import element
from trimtuner.views.marking import key_of, mark_of
from trimtuner.views.words import BLOCKS, Signs, cell, count_of, machines, seconds, share, usd

RUNNING, DONE = "running", "ok"
WAITING = "waiting"  # handed in, and not begun: in the queue of a cluster
UNWATCHED = "unwatched"  # its run is gone; it goes on until its time-out, or until another run takes it over
UNCOLLECTED = "uncollected"  # its run is gone and its time-out has passed: the next run will tell how it ended
_SHOWN = 300  # the last ones
_LANE, _BAR, _WIDTH = 18.0, 12.0, 1300
_NAME_LETTERS = 30
_HERE = "this machine"
_STATES = (
    ("bar queue", "waiting to start"),
    ("bar done", "ended well"),
    ("bar failed", "failed or was ended (with a cross)"),
    ("bar preempted", "pre-empted (with a cross)"),
    ("bar running", "running"),
    ("line retry", "tried again"),
)


@dataclass(frozen=True)
class Bar:
    """One attempt at a trial, from its start to its end. Seconds are since the first trial was asked."""

    trial: int
    attempt: int
    config: Mapping[str, Value]
    fraction: float
    asked: float
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
        config=trial.config,
        fraction=trial.fraction,
        asked=max(one.asked_at - begin, 0.0),
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
        where = trial.config, trial.fraction
        bars.append(Bar(trial.number, 1, *where, clock, clock, end, False, machines(trial.config), state, outcome.cost))
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
    shown = bars[-_SHOWN:]
    return [Drawn([lead + last, Picture(_picture(shown), _STATES, name="timeline", table=_table(shown))], [lead])]


def _table(bars: tuple[Bar, ...]) -> TextTable:
    """The bars that are drawn, in numbers."""
    lines = [
        [
            *(cell(bar.trial), cell(bar.attempt), bar.machines or _HERE, cell(bar.fraction), bar.state),
            *(cell(round(at, 3)) for at in (bar.asked, bar.begin, bar.end)),
            cell(bar.usd),
        ]
        for bar in bars
    ]
    heads = ["trial", "attempt", "machines", "share of the data", "state", "asked (s)", "began (s)", "ended (s)", "USD"]
    return TextTable(heads, lines, "data", [key_of(bar.config) for bar in bars])


def lanes(bars: tuple[Bar, ...]) -> tuple[list[str], list[int]]:
    """The machines of each lane, and each bar's lane: one below the other where their times overlap."""
    found: list[tuple[str, float]] = []  # machines, when the lane is free again
    placed: dict[int, tuple[str, int]] = {}
    for position in sorted(range(len(bars)), key=lambda one: bars[one].asked):
        bar, name = bars[position], bars[position].machines or _HERE
        free = (number for number, (whose, until) in enumerate(found) if whose == name and until <= bar.asked)
        lane = next(free, len(found))
        found[lane : lane + 1] = [(name, bar.end)]
        placed[position] = (name, lane)
    order = sorted(range(len(found)), key=lambda one: (found[one][0], one))
    rank = {lane: place for place, lane in enumerate(order)}
    return [found[lane][0] for lane in order], [rank[placed[position][1]] for position in range(len(bars))]


def _picture(bars: tuple[Bar, ...]) -> str:
    """Time to the right; a lane for every set of machines that trials used at the same time."""
    names, lane_of = lanes(bars)
    unit, unit_name = time_unit(max(bar.end for bar in bars))
    left = room_for(names, _NAME_LETTERS)
    first = 0.0 if bars[0].asked < 0.2 * max(bar.end for bar in bars) else min(bar.asked for bar in bars) / unit
    x = scale_for([first, *(bar.end / unit for bar in bars)], left, _WIDTH - RIGHT)
    bottom = TOP + _LANE * len(names)
    y = Scale(-0.5, len(names) - 0.5, TOP, bottom)
    named = [(float(lane), cut(name, _NAME_LETTERS)) for lane, name in enumerate(names) if name not in names[:lane]]
    words = f"{unit_name} since the first trial"
    chart = Chart(x, y, words, "", "Attempts at trials over time, by machines", y_ticks=named)
    before: dict[int, tuple[float, float]] = {}
    for bar, lane in zip(bars, lane_of, strict=True):
        _add(chart, bar, float(lane), unit)
        if bar.trial in before:
            chart.line([before[bar.trial], (bar.asked / unit, float(lane))], "retry")
        before[bar.trial] = (bar.end / unit, float(lane))
    return chart.svg()


def _add(chart: Chart, bar: Bar, lane: float, unit: float) -> None:
    kind = "running" if bar.is_running else {DONE: "done", PREEMPTED: "preempted"}.get(bar.state, "failed")
    again = f" (attempt {bar.attempt})" if bar.attempt > 1 else ""
    paid = f", {usd(bar.usd)}{' reserved' if bar.is_running else ''}" if bar.usd else ""
    waited = [f"waited {seconds(bar.begin - bar.asked)} to start"] if bar.begin - bar.asked >= 0.1 else []
    mark = mark_of(
        bar.config,
        f"trial {bar.trial}{again} on {share(bar.fraction)} of the data: {bar.state}",
        f"{seconds(bar.end - bar.begin)}{paid}, on {bar.machines or _HERE}",
        *waited,
        trial=bar.trial,
    )
    if waited:
        chart.bar(bar.asked / unit, bar.begin / unit, lane, 4.0, "queue", mark)
    chart.bar(bar.begin / unit, bar.end / unit, lane, _BAR, kind, mark)
    if kind in ("failed", "preempted"):
        cross = f"translate({chart.x(bar.end / unit):.1f},{chart.y(lane):.1f})"
        chart.marks.append(element("path", d="M-4,-4L4,4M-4,4L4,-4", transform=cross, class_="cross"))


VIEW = View("timeline", "Timeline", "facts", _blocks, size="wide", nothing="No trial was started yet.")
