"""View 8 as HTML: every trial in a table that is filtered and sorted, each with its log, metrics and snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from trimtuner.state import StudyState
from trimtuner.views.markup import sentences, table
from trimtuner.views.trials import Row, rows, state_words, told_metrics
from trimtuner.views.words import configuration, count_of, metric, number, seconds, share, usd

ROWS_AT_FIRST = 200  # on the page, where the others come when they are asked for
_ROWS_IN_REPORT = 1_000
_OTHER_COLUMNS = 6  # than the metrics

_FILTER = (
    "<p class='controls'><label>Filter <input type='search' data-filter placeholder='words, such as oom spot'></label> "
    "<span data-count aria-live='polite'></span></p>"
)
_HOW = "Open a row (click, or Enter) for its metrics, snapshots and log; a column's name sorts by it."


def trials_section(subject: StudyState) -> str:
    """The newest trials; what a row opens to is asked for when it is opened."""
    found = newest_first(subject)
    if not found:
        return sentences("No trials yet.")
    more = ""
    if len(found) > ROWS_AT_FIRST:
        words = f"The newest {ROWS_AT_FIRST} of {len(found):,} trials."
        more = f"<p class='more' data-rows='{len(found)}'>{words} <button type='button' data-more>Show all</button></p>"
    body = table_rows(subject, found[:ROWS_AT_FIRST])
    return f"{sentences(_HOW)}{_FILTER}{_table(subject, body)}{more}"


def trials_report(subject: StudyState) -> str:
    """The trials with all that their rows open to, for a page that can ask nobody."""
    found = newest_first(subject)
    if not found:
        return sentences("No trials yet.")
    metrics = told_metrics(subject)
    body = "".join(f"{_row(metrics, row)}{_opened(metrics, trial_detail(row))}" for row in found[:_ROWS_IN_REPORT])
    left_out = f"The newest {_ROWS_IN_REPORT:,} of {len(found):,} trials; 'trimtuner export' gives all."
    return (
        f"{sentences(_HOW)}{_FILTER}{_table(subject, body)}"
        f"{sentences(left_out if len(found) > _ROWS_IN_REPORT else '')}"
    )


def newest_first(subject: StudyState) -> tuple[Row, ...]:
    """Every trial, the last one first."""
    return tuple(reversed(rows(subject)))


def table_rows(subject: StudyState, shown: Iterable[Row]) -> str:
    """Rows, each with an empty one behind it for what it opens to."""
    metrics = told_metrics(subject)
    return "".join(f"{_row(metrics, row)}{_opened(metrics, '')}" for row in shown)


def trial_detail(row: Row) -> str:
    """What a row opens to; the log is put in by the page."""
    ended = count_of(row.attempts, "attempt")
    broken = f", breaks {' and '.join(row.breaks)}" if row.breaks else ""
    parts = [sentences(f"{row.state}{broken}; {ended}; asked by: {row.origin}")]
    if row.metrics:
        parts.append(table(("metric", "value"), ((name, metric(name, one)) for name, one in row.metrics.items())))
    if row.snapshots:
        lines = (
            (share(fraction), ", ".join(f"{name} {metric(name, one)}" for name, one in found.items()))
            for fraction, found in row.snapshots
        )
        parts.append(sentences("Snapshots") + table(("data", "metrics"), lines))
    if row.log is not None:
        parts.append("<p>Log</p><pre class='log' data-log tabindex='0'></pre>")
    return "".join(parts)


def _table(subject: StudyState, body: str) -> str:
    heads = ("trial", "data", *told_metrics(subject), "cost", "time", "state", "configuration")
    head = "".join(f"<th scope='col'><button type='button' data-sort>{escape(one)}</button></th>" for one in heads)
    return (
        f"<div class='scroll'><table class='trials'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(metrics: tuple[str, ...], row: Row) -> str:
    cells = (
        (str(row.trial), row.trial),
        (share(row.fraction), row.fraction),
        *((number(row.metrics.get(name)), row.metrics.get(name)) for name in metrics),
        ("-" if not row.cost else usd(row.cost), row.cost),
        ("-" if row.time is None else seconds(row.time), row.time),
        (state_words(row), None),
        (configuration(row.config), None),
    )
    written = "".join(_cell(words, value) for words, value in cells)
    return f"<tr data-trial='{row.trial}' tabindex='0' aria-expanded='false'>{written}</tr>"


def _cell(words: str, value: float | None) -> str:
    """With the number to sort by, where the words are none."""
    by = "" if value is None else f" data-value='{value!r}'"
    return f"<td{by}>{escape(words)}</td>"


def _opened(metrics: tuple[str, ...], content: str) -> str:
    return f"<tr class='detail' hidden><td colspan='{_OTHER_COLUMNS + len(metrics)}'>{content}</td></tr>"
