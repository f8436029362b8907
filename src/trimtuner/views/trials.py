"""Every trial: its configuration, how it ended, what it measured and what it cost; each with its log and snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement, Outcome, Trial
from trimtuner.problem.problem import Problem
from trimtuner.records import Attempt
from trimtuner.state import StudyState
from trimtuner.views.blocks import Block, Drawn, Html, TextTable, View, html_of
from trimtuner.views.timeline import DONE, state_of_open
from trimtuner.views.words import configuration, count_of, metric, number, seconds, share, usd

ROWS_AT_FIRST = 200  # on the page, where the others come when they are asked for
_ROWS_IN_REPORT = 1_000
_ROWS_IN_WORDS = 20
_OTHER_COLUMNS = 6  # than the metrics

_FILTER = (
    "<p class='controls'><label>Filter <input type='search' data-filter placeholder='words, such as oom spot'></label> "
    "<span data-count aria-live='polite'></span></p>"
)
_HOW = "Open a row (click, or Enter) for its metrics, snapshots and log; a column's name sorts by it."


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
    log: Path | None
    breaks: tuple[str, ...] = ()  # the limited metrics that it measured beyond their limits, where these are meant


def rows(subject: StudyState) -> tuple[Row, ...]:
    """Every trial, in the order of their numbers."""
    outcomes = {outcome.trial.number: outcome for outcome in subject.history.outcomes}
    last = {one.trial: one for one in subject.attempts}
    return tuple(_row(subject, trial, outcomes.get(trial.number), last.get(trial.number)) for trial in subject.trials)


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
        log=None if last is None or subject.log_of is None else subject.log_of(trial.number, last.attempt),
        breaks=() if outcome is None else broken_limits(subject.problem, outcome),
    )


def state_words(row: Row) -> str:
    """How a trial stands, such as ``ok, breaks cost (2 attempts)``."""
    broken = f", breaks {' and '.join(row.breaks)}" if row.breaks else ""
    again = f" ({row.attempts} attempts)" if row.attempts > 1 else ""
    return f"{row.state}{broken}{again}"


def trials_table(metrics: Sequence[str], shown: Sequence[Row]) -> TextTable:
    """Trials in one line each; without a column of costs where nothing cost anything."""
    has_cost = any(row.cost for row in shown)
    lines = [
        [
            str(row.trial),
            share(row.fraction),
            *(number(row.metrics.get(name)) for name in metrics),
            *(["-" if row.cost is None else usd(row.cost)] if has_cost else []),
            "-" if row.time is None else seconds(row.time),
            state_words(row),
            configuration(row.config),
        ]
        for row in shown
    ]
    return TextTable(
        ["trial", "data", *metrics, *(["cost"] if has_cost else []), "time", "state", "configuration"], lines
    )


def _blocks(subject: StudyState) -> list[Block]:
    """The newest trials; what a row opens to is asked for when it is opened."""
    found = newest_first(subject)
    if not found:
        return ["No trials yet."]
    more = ""
    if len(found) > ROWS_AT_FIRST:
        words = f"The newest {ROWS_AT_FIRST} of {len(found):,} trials."
        more = f"<p class='more' data-rows='{len(found)}'>{words} <button type='button' data-more>Show all</button></p>"
    body = table_rows(subject, found[:ROWS_AT_FIRST])
    last = f" The last {_ROWS_IN_WORDS}:" if len(found) > _ROWS_IN_WORDS else ""
    words = f"{count_of(len(found), 'trial')}.{last}"
    written = trials_table(subject.problem.reported_metrics, found[:_ROWS_IN_WORDS])
    return [Drawn([_HOW, Html(f"{_FILTER}{_table_html(subject, body)}{more}")], [words, written])]


def _in_report(subject: StudyState) -> list[Block]:
    """The trials with all that their rows open to, for a page that can ask nobody."""
    found = newest_first(subject)
    if not found:
        return ["No trials yet."]
    metrics = subject.problem.reported_metrics
    body = "".join(f"{_row_html(metrics, row)}{_opened(metrics, trial_detail(row))}" for row in found[:_ROWS_IN_REPORT])
    left_out = f"The newest {_ROWS_IN_REPORT:,} of {len(found):,} trials; 'trimtuner export' gives all."
    return [_HOW, Html(f"{_FILTER}{_table_html(subject, body)}"), left_out if len(found) > _ROWS_IN_REPORT else ""]


def newest_first(subject: StudyState) -> tuple[Row, ...]:
    """Every trial, the last one first."""
    return tuple(reversed(rows(subject)))


def table_rows(subject: StudyState, shown: Iterable[Row]) -> str:
    """Rows, each with an empty one behind it for what it opens to."""
    metrics = subject.problem.reported_metrics
    return "".join(f"{_row_html(metrics, row)}{_opened(metrics, '')}" for row in shown)


def trial_detail(row: Row) -> str:
    """What a row opens to; the log is put in by the page."""
    ended = count_of(row.attempts, "attempt")
    broken = f", breaks {' and '.join(row.breaks)}" if row.breaks else ""
    blocks: list[Block] = [f"{row.state}{broken}; {ended}; asked by: {row.origin}"]
    if row.metrics:
        lines = [(name, metric(name, one)) for name, one in row.metrics.items()]
        blocks.append(TextTable(("metric", "value"), lines))
    if row.snapshots:
        lines = [
            (share(fraction), ", ".join(f"{name} {metric(name, one)}" for name, one in found.items()))
            for fraction, found in row.snapshots
        ]
        blocks += ["Snapshots", TextTable(("data", "metrics"), lines)]
    if row.log is not None:
        blocks += ["Log", Html("<pre class='log' data-log tabindex='0'></pre>")]
    return html_of(blocks)


def _table_html(subject: StudyState, body: str) -> str:
    heads = ("trial", "data", *subject.problem.reported_metrics, "cost", "time", "state", "configuration")
    head = "".join(f"<th scope='col'><button type='button' data-sort>{escape(one)}</button></th>" for one in heads)
    return (
        f"<div class='scroll'><table class='trials'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row_html(metrics: tuple[str, ...], row: Row) -> str:
    cells = (
        (str(row.trial), row.trial),
        (share(row.fraction), row.fraction),
        *((number(row.metrics.get(name)), row.metrics.get(name)) for name in metrics),
        ("-" if not row.cost else usd(row.cost), row.cost),
        ("-" if row.time is None else seconds(row.time), row.time),
        (state_words(row), None),
        (configuration(row.config), None),
    )
    written = "".join(_cell_html(words, value) for words, value in cells)
    return f"<tr data-trial='{row.trial}' tabindex='0' aria-expanded='false'>{written}</tr>"


def _cell_html(words: str, value: float | None) -> str:
    """With the number to sort by, where the words are none."""
    by = "" if value is None else f" data-value='{value!r}'"
    return f"<td{by}>{escape(words)}</td>"


def _opened(metrics: tuple[str, ...], content: str) -> str:
    return f"<tr class='detail' hidden><td colspan='{_OTHER_COLUMNS + len(metrics)}'>{content}</td></tr>"


VIEW = View("trials", "Trials", "facts", _blocks, in_report=_in_report, is_drawn=False)
