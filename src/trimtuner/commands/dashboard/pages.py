"""The pages around the views."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from trimtuner.commands.dashboard.recorded import InRecord
from trimtuner.commands.dashboard.renderer import Shown
from trimtuner.problem.history import Outcome
from trimtuner.views import every
from trimtuner.views.blocks import READING, View, Warned, html_of
from trimtuner.views.document import goal_text, navigation, page, section
from trimtuner.views.standing import Standing, against
from trimtuner.views.trials import Row
from trimtuner.views.words import seconds, usd_together

_NO_PAGE = "<br><span class='sub'>no page: its job file was not given; start the dashboard with that, too</span>"
_HEADS = ("study", "trouble", "state", "best", "limits", "spent", "trials", "running", "last sign of life")
_HEAD = (
    '<link rel="icon" href="data:,"><link rel="stylesheet" href="/static/style.css">'
    '<script type="module" src="/static/page.js"></script>'
)


def home_page(studies: Sequence[Shown | InRecord]) -> str:
    """All studies, with where each stands."""
    body = (
        '<header class="top"><div class="line1"><h1>Studies</h1>'
        '<p class="sub" id="state" role="status"></p></div></header>'
        f'<main id="studies">{studies_table(studies)}</main>'
    )
    return page("Studies", _HEAD, body)


def studies_table(studies: Sequence[Shown | InRecord]) -> str:
    """A line for each study, those in trouble first."""
    order = sorted(range(len(studies)), key=lambda one: (-_urgency(studies[one]), studies[one].name))
    heads = "".join(f'<th scope="col">{one}</th>' for one in _HEADS)
    lines = "".join(_line(number, studies[number]) for number in order)
    table = f'<table class="plain"><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>'
    button = '<p class="controls"><button type="submit">Put those ticked against each other</button></p>'
    inside = f'<form action="/against">{button}<div class="scroll" tabindex="0">{table}</div></form>'
    return f'<section class="wide" aria-label="Studies">{inside}</section>'


def against_page(studies: Sequence[Standing]) -> str:
    """The page that has several studies beside each other."""
    body = (
        '<header class="top"><div class="line1"><a href="/">all studies</a><h1>Against each other</h1></div></header>'
        f'<main><section class="wide" id="against" aria-label="Against each other">{html_of(against(studies))}'
        "</section></main>"
    )
    return page("Against each other", _HEAD, body)


def study_page(shown: Shown, number: int, back: str, forms: str) -> str:
    """One study: its first screen; the other views follow by themselves."""
    sections = "".join(section(view, *_content(shown, view)) for view in every.VIEWS)
    goal = "" if shown.subject is None else goal_text(shown.subject)
    body = (
        f'<header class="top"><div class="line1">{back}<h1>{escape(shown.name)}</h1>'
        f'<p class="sub" id="goal">{escape(goal)}</p><p class="sub" id="state" role="status">{escape(shown.said)}</p>'
        f'{forms}</div>{navigation()}</header><main id="study" data-number="{number:d}">{sections}</main>'
    )
    return page(shown.name, _HEAD, body)


def _content(shown: Shown, view: View) -> tuple[str, str | None]:
    """What is there of a view, and its version: of the first screen, since all at once would stall a browser."""
    found = shown.made(view)
    if found is not None and view.is_first:
        return found.html[view.name], found.state
    is_soon = found is not None or view.effort in READING
    words = shown.trouble or (
        "Drawn in a moment." if is_soon else "Drawn when the model is fitted to what was measured."
    )
    return f'<p class="stale">{escape(words)}</p>', None


@dataclass(frozen=True)
class Forms:
    """What a page can change: of a study by its number, and of one of its trials. Nothing, unless that is allowed."""

    of_study: Callable[[int], str] = lambda _: ""
    of_trial: Callable[[int, Row], str] = lambda _number, _row: ""


def is_failure(outcome: Outcome) -> bool:
    """Whether there is something to forget."""
    return outcome.failed is not None and not outcome.is_forgotten


def forget_form(base: str, shown: Shown, row: Row, form_token: str) -> str:
    """A button that takes the failure of one trial back; nothing for a trial that did not fail."""
    outcomes = () if shown.subject is None else shown.subject.history.outcomes
    if not any(one.trial.number == row.trial and is_failure(one) for one in outcomes):
        return ""
    question = f"Forget that trial {row.trial} failed? It stays charged, and counts for nothing else."
    field = f'<input type="hidden" name="trial" value="{row.trial:d}">'
    return _form(f"{base}/forget", "Forget this failure", question, form_token, field)


def change_forms(base: str, shown: Shown, form_token: str) -> str:
    """Buttons that change a study, each once it was confirmed."""
    stop = "Start no more trials of this study? Those that run go on to their end."
    forget = "Forget every failed trial? They stay charged, and count for nothing else."
    enqueue = "Test this configuration next, whatever the method would ask? It is charged like every trial."
    known = None if shown.subject is None else shown.subject.history.last_recommended
    config, fraction = known or ({}, 1.0)
    shares = () if shown.subject is None else shown.subject.problem.space.fractions
    offered = f'<span data-shares="{" ".join(f"{one!r}" for one in shares)}"></span>'  # for a picked configuration
    fields = (
        f"{offered}"
        f'<label>configuration <input name="config" size="50" value="{escape(json.dumps(dict(config)), quote=True)}">'
        f'</label> <label>share of the data <input name="fraction" size="5" value="{fraction:g}"></label> '
    )
    return (
        _form(f"{base}/stop", "Stop", stop, form_token)
        + _form(f"{base}/forget", "Forget failures", forget, form_token)
        + "<details><summary>Enqueue a configuration</summary>"
        + _form(f"{base}/enqueue", "Enqueue", enqueue, form_token, fields)
        + "</details>"
    )


def _form(action: str, words: str, question: str, form_token: str, fields: str = "") -> str:
    return (
        f'<form data-change="{escape(question, quote=True)}" method="post" action="{escape(action, quote=True)}">'
        f'<input type="hidden" name="form_token" value="{escape(form_token, quote=True)}">{fields}'
        f'<button type="submit">{escape(words)}</button> <span role="status"></span></form>'
    )


def _urgency(shown: Shown | InRecord) -> int:
    """Trouble first, then what is at work, then the rest; what has not begun comes last."""
    if shown.standing is None:
        return 3 if shown.watched is not None else 0
    return 2 + len(shown.standing.troubles) if shown.standing.troubles else 1 + (shown.standing.running > 0)


def _line(number: int, shown: Shown | InRecord) -> str:
    name = escape(shown.name, quote=True)
    tick = f'<input type="checkbox" name="study" value="{number:d}" aria-label="put {name} against others">'
    link = (
        f"{tick} {name}{_NO_PAGE}" if isinstance(shown, InRecord) else f'{tick} <a href="/study/{number:d}">{name}</a>'
    )
    if shown.standing is None:
        words = shown.trouble if shown.watched is not None else "not begun"
        return f'<tr><td>{link}</td><td colspan="{len(_HEADS) - 1}">{escape(words)}</td></tr>'
    # What to do about it is on the study's own page.
    wrong = "".join(html_of([Warned(one.split(";")[0])]) for one in shown.standing.troubles) or "nothing is wrong"
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in _cells(shown.standing))
    return f"<tr><td>{link}</td><td>{wrong}</td>{cells}</tr>"


def _cells(now: Standing) -> list[str]:
    money = now.money
    sums = [money.spent] if money.budget is None else [money.spent, money.budget]
    spent = " of ".join(usd_together(*sums)) if now.counts_money else "not counted"
    ended = f"{now.ended:,} ({now.failed:,} failed)" if now.failed else f"{now.ended:,}"
    sign = "-" if now.last_sign is None else f"{seconds(max(time.time() - now.last_sign, 0.0))} ago"
    return [now.state, now.best_words, now.limits, spent, ended, str(now.running), sign]
