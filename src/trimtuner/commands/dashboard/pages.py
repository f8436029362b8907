"""The pages around the views."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from trimtuner.commands.dashboard.renderer import Shown
from trimtuner.errors import TrimTunerError
from trimtuner.records import Status
from trimtuner.views import every
from trimtuner.views.document import navigation, page, section
from trimtuner.views.words import usd

_HEAD = (
    '<link rel="icon" href="data:,"><link rel="stylesheet" href="/static/style.css">'
    '<script src="/static/page.js" defer></script><script src="/static/live.js" defer></script>'
)


def home_page(studies: Sequence[Shown]) -> str:
    """All studies, with where each stands."""
    body = (
        '<header class="top"><h1>Studies</h1><p class="sub" id="state" role="status"></p></header>'
        f'<main id="studies">{studies_table(studies)}</main>'
    )
    return page("Studies", _HEAD, body)


def studies_table(studies: Sequence[Shown]) -> str:
    """A line for each study."""
    heads = "".join(f'<th scope="col">{one}</th>' for one in ("study", "spent", "budget", "trials", "running", "job"))
    lines = "".join(_line(number, one) for number, one in enumerate(studies))
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'


def study_page(shown: Shown, number: int, back: str, stop: str) -> str:
    """One study: a place for each view, filled as they are made."""
    words = escape(shown.trouble or "being read")
    sections = "".join(section(view, f'<p class="stale">{words}</p>') for view in every.VIEWS)
    body = (
        f'<header class="top"><p class="sub">{back}</p><h1>{escape(shown.name)}</h1>'
        '<p class="sub" id="goal"></p><p class="sub" id="state" role="status">connecting</p>'
        f'{stop}{navigation()}</header><main id="study" data-number="{number:d}">{sections}</main>'
    )
    return page(shown.name, _HEAD, body)


def stop_form(number: int, form_token: str) -> str:
    """A button that asks the study to stop."""
    return (
        f'<form data-stop method="post" action="/study/{number:d}/stop">'
        f'<input type="hidden" name="form_token" value="{escape(form_token, quote=True)}">'
        '<button type="submit">Start no more trials</button> <span role="status"></span></form>'
    )


def _line(number: int, shown: Shown) -> str:
    try:
        cells = ["-", "-", "-", "not begun"] if shown.watched is None else _counts(shown.watched.record.status())
    except TrimTunerError:
        cells = ["-", "-", "-", "not begun"]
    told = "".join(f"<td>{escape(cell)}</td>" for cell in (*cells, str(shown.path)))
    return f'<tr><td><a href="/study/{number:d}">{escape(shown.name)}</a></td>{told}</tr>'


def _counts(now: Status) -> list[str]:
    budget = "none" if now.budget is None else usd(now.budget)
    ended = f"{now.succeeded + now.failed:,} ({now.failed:,} failed)" if now.failed else f"{now.succeeded:,}"
    return [usd(now.spent), budget, ended, str(now.open)]
