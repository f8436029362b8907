"""Every trial: its configuration, how it ended, what it measured and what it cost; each with its log and snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from itertools import islice
from pathlib import Path

from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement, Outcome, Trial
from trimtuner.problem.problem import COST, TIME, Problem
from trimtuner.records import Attempt
from trimtuner.state import LogOf, StudyState
from trimtuner.views.blocks import Block, Drawn, Html, TextTable, View, html_of
from trimtuner.views.marking import key_of
from trimtuner.views.timeline import DONE, state_of_open
from trimtuner.views.words import count_of, metric, number, seconds, share, usd, value_text

ROWS_AT_FIRST = 100  # on the page, where the others come when they are asked for
_ROWS_IN_REPORT = 1_000
_ROWS_IN_WORDS = 20

_FILTER = (
    "<div class='controls'>"
    "<label>Filter <input type='search' data-filter placeholder='words, such as oom spot'></label>"
    "<details><summary>Columns</summary><div data-columns></div></details>"
    "<span data-count aria-live='polite'></span></div>"
)
_HOW = (
    "Click a row, or Enter, for its metrics, snapshots and log; its number, or the space bar, picks it; the name of "
    "a column sorts by it."
)


@dataclass(frozen=True)
class Row:
    """One trial: what was asked, and how it went."""

    trial: int
    origin: str
    config: Mapping[str, Value]
    fraction: float
    state: str
    cost: float | None
    time: float | None
    metrics: Mapping[str, float]
    snapshots: tuple[tuple[float, Mapping[str, float]], ...]
    attempts: int
    log_of: LogOf | None = field(repr=False, compare=False)  # where its output is kept, if anywhere
    notes: tuple[str, ...] = ()  # what else is to be known of it
    breaks: tuple[str, ...] = ()  # the limited metrics that it measured beyond their limits, where these are meant

    @property
    def number(self) -> int:
        """Which trial it is, as ``ask`` numbers them."""
        return self.trial

    @property
    def log(self) -> Path | None:
        """The file with what its last attempt printed."""
        return None if self.log_of is None else self.log_of(self.trial, self.attempts)


def rows(subject: StudyState) -> tuple[Row, ...]:
    """Every trial, in the order of their numbers."""
    return rows_of(subject, subject.trials)


def rows_of(subject: StudyState, trials: Iterable[Trial]) -> tuple[Row, ...]:
    """Some trials, in their order."""
    outcomes = {outcome.trial.number: outcome for outcome in subject.history.outcomes}
    last = {one.trial: one for one in subject.attempts}
    return tuple(_row(subject, trial, outcomes.get(trial.number), last.get(trial.number)) for trial in trials)


def flat_rows(shown: Iterable[Row]) -> list[dict[str, Value]]:
    """Trials in plain values, a column each."""
    return [
        {
            "trial": row.number,
            "state": row.state,
            "fraction": row.fraction,
            "origin": row.origin,
            **{f"config_{name}": value for name, value in row.config.items()},
            **{f"metric_{name}": value for name, value in row.metrics.items() if name not in (COST, TIME)},
            "cost": row.cost,
            "time": row.time,
        }
        for row in shown
    ]


def broken_limits(problem: Problem, outcome: Outcome) -> tuple[str, ...]:
    """The metrics that a trial measured beyond their limits, on a share of the data where these are meant."""
    final = _final(outcome)
    if final is None or final.fraction not in problem.target_fractions:
        return ()
    limits = [one for one in problem.constraints if one.metric in final.metrics]
    return tuple(dict.fromkeys(one.metric for one in limits if not one.is_met(final.metrics[one.metric])))


def _final(outcome: Outcome | None) -> Measurement | None:
    """What a trial measured on the share of the data that it was asked for."""
    measured = () if outcome is None else outcome.measurements
    return measured[-1] if outcome and measured and measured[-1].fraction == outcome.trial.fraction else None


def _row(subject: StudyState, trial: Trial, outcome: Outcome | None, last: Attempt | None) -> Row:
    measured = () if outcome is None else outcome.measurements
    final = _final(outcome)
    on_the_way = tuple((m.fraction, dict(m.metrics)) for m in measured if m is not final)
    return Row(
        trial=trial.number,
        origin=trial.origin,
        config=dict(trial.config),
        fraction=trial.fraction,
        state=state_of_open(subject, last) if outcome is None else outcome.failure or DONE,
        cost=None if outcome is None else outcome.cost,
        time=None if outcome is None else outcome.time,
        metrics={} if final is None else dict(final.metrics),
        snapshots=on_the_way,
        attempts=1 if last is None else last.attempt,
        log_of=None if last is None else subject.log_of,
        notes=subject.notes.get(trial.number, ()),
        breaks=() if outcome is None else broken_limits(subject.problem, outcome),
    )


def trials_table(subject: StudyState, shown: Iterable[Row]) -> TextTable:
    """Trials in one line each."""
    names = _parameters(subject)
    return TextTable(_heads(subject), [[words for words, _ in _cells(subject, row, names)] for row in shown])


def _heads(subject: StudyState) -> list[str]:
    """The columns; without costs where no money is counted."""
    cost = ["cost"] if subject.counts_money else []
    return ["trial", "data", *subject.problem.reported_metrics, *cost, "time", "state", *_parameters(subject)]


def _parameters(subject: StudyState) -> list[str]:
    """The names of all parameters that trials have, in the order in which they come."""
    return list(dict.fromkeys(name for trial in subject.trials for name in trial.config))


def _cells(subject: StudyState, row: Row, parameters: list[str]) -> list[tuple[str, float | None]]:
    """The words of each cell, and the number to sort by where these are none."""
    cost = [("-" if row.cost is None else usd(row.cost), row.cost)] if subject.counts_money else []
    again = f" ({row.attempts} attempts)" if row.attempts > 1 else ""
    return [
        (str(row.trial), row.trial),
        (share(row.fraction), row.fraction),
        *((number(row.metrics.get(name)), row.metrics.get(name)) for name in subject.problem.reported_metrics),
        *cost,
        ("-" if row.time is None else seconds(row.time), row.time),
        (f"{_state_words(row)}{again}", None),
        *(_value(row.config.get(name)) for name in parameters),
    ]


def _value(value: Value | None) -> tuple[str, float | None]:
    """A value of a parameter, and the number to sort by; a dash where there is none."""
    if value is None:
        return "-", None
    return value_text(value), float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _state_words(row: Row) -> str:
    """How a trial stands, such as ``ok, breaks cost``."""
    return f"{row.state}, breaks {' and '.join(row.breaks)}" if row.breaks else row.state


def newest_first(subject: StudyState, most: int, below: int | None = None) -> tuple[Row, ...]:
    """So many trials at most, the last one first, of those below a number where one is given."""
    found = (trial for trial in reversed(subject.trials) if below is None or trial.number < below)
    return rows_of(subject, islice(found, most))


def table_rows(subject: StudyState, shown: Iterable[Row]) -> str:
    """Rows as HTML, one for each trial."""
    names = _parameters(subject)
    return "".join(_table_row(subject, row, names) for row in shown)


def _rows_with_details(subject: StudyState, shown: Iterable[Row]) -> str:
    """Rows as HTML, each with a hidden one behind it for what it opens to."""
    span, names = len(_heads(subject)), _parameters(subject)
    return "".join(
        f"{_table_row(subject, row, names)}<tr class='detail' hidden><td colspan='{span}'>{trial_detail(row)}</td></tr>"
        for row in shown
    )


def _table_row(subject: StudyState, row: Row, parameters: list[str]) -> str:
    begin = f"<tr data-trial='{row.trial}' data-c='{key_of(row.config)}' data-t='{row.trial}' tabindex='0' "
    return f"{begin}aria-expanded='false'>{_row_cells(_cells(subject, row, parameters))}</tr>"


def _row_cells(cells: list[tuple[str, float | None]]) -> str:
    (number_of, value), *others = cells
    first = f"<td data-value='{value!r}'><span data-pick>{escape(number_of)}</span></td>"
    return first + "".join(_cell(words, one) for words, one in others)


def _cell(words: str, value: float | None) -> str:
    by = "" if value is None else f" data-value='{value!r}'"
    return f"<td{by}>{escape(words)}</td>"


def trial_detail(row: Row) -> str:
    """What a row opens to; the log is put in by the page."""
    told = f"{_state_words(row)}; {count_of(row.attempts, 'attempt')}; asked by: {row.origin}"
    blocks: list[Block] = [told, *row.notes]
    if row.metrics:
        lines = [(name, metric(name, one)) for name, one in row.metrics.items()]
        blocks.append(TextTable(("metric", "value"), lines))
    if row.snapshots:
        lines = [
            (share(fraction), ", ".join(f"{name} {metric(name, one)}" for name, one in found.items()))
            for fraction, found in row.snapshots
        ]
        blocks += ["Snapshots", TextTable(("data", "metrics"), lines)]
    if row.log_of is not None:
        blocks += ["Log", Html("<pre class='log' data-log tabindex='0'></pre>")]
    return html_of(blocks)


def _blocks(subject: StudyState) -> list[Block]:
    """The newest trials; what a row opens to is asked for when it is opened."""
    found, count = newest_first(subject, ROWS_AT_FIRST), len(subject.trials)
    if not found:
        return []
    more = ""
    if count > ROWS_AT_FIRST:
        words = f"The newest {ROWS_AT_FIRST} of {count:,} trials."
        more = f"<p class='more' data-rows='{count}'>{words} <button type='button' data-more>Show all</button></p>"
    table = _table(subject, table_rows(subject, found))
    last = f" The last {_ROWS_IN_WORDS}:" if count > _ROWS_IN_WORDS else ""
    written: list[Block] = [f"{count_of(count, 'trial')}.{last}", trials_table(subject, found[:_ROWS_IN_WORDS])]
    return [Drawn([_HOW, table, Html(more)], written)]


def _in_report(subject: StudyState) -> list[Block]:
    """The trials with all that their rows open to, for a page that can ask nobody."""
    found, count = newest_first(subject, _ROWS_IN_REPORT), len(subject.trials)
    if not found:
        return []
    left_out = f"The newest {_ROWS_IN_REPORT:,} of {count:,} trials; 'trimtuner export' gives all."
    table = _table(subject, _rows_with_details(subject, found))
    return [_HOW, table, left_out if count > _ROWS_IN_REPORT else ""]


def _table(subject: StudyState, body: str) -> Html:
    """A table that is filtered and sorted, and whose rows open."""
    sort = "<th scope='col'><button type='button' data-sort>"
    head = "".join(f"{sort}{escape(one)}</button></th>" for one in _heads(subject))
    begin = "<table class='trials' role='treegrid' aria-label='Trials'>"
    inside = f"{begin}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return Html(f"{_FILTER}<div class='scroll rows' tabindex='0'>{inside}</div>")


VIEW = View(
    "trials",
    "Trials",
    "facts",
    _blocks,
    in_report=_in_report,
    is_drawn=False,
    size="wide",
    nothing="No trials yet.",
)
