"""All views in one file that needs nothing else: to send, to keep, to print."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Mapping
from html import escape
from importlib import resources

from trimtuner.state import StudyState
from trimtuner.views import every
from trimtuner.views.blocks import View, html_of

_MODULES = ("state.js", "zoom.js", "marks.js", "tools.js", "trials.js", "compare.js")  # each after those it needs


def document(subject: StudyState, logs: Mapping[int, str] | None = None) -> str:
    """The whole report as one HTML file; logs are the ends of what trials printed, by their number."""
    sections = "".join(section(view, html_of(view.shown_in_report(subject))) for view in every.VIEWS)
    kept = json.dumps({str(trial): text for trial, text in (logs or {}).items()})
    code, look = script(), style()
    policy = (
        f"default-src 'none'; style-src '{_hash(look)}'; script-src '{_hash(code)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(subject.now or time.time()))
    head = f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=True)}"><style>{look}</style>'
    return page(
        subject.name,
        head,
        f'<header class="top"><div class="line1"><h1>{escape(subject.name)}</h1>'
        f'<p class="sub">{escape(goal_text(subject))}</p><p class="sub">as of {escape(made)}</p></div>'
        f"{navigation()}</header><main>{sections}</main>"
        f"<footer><p>Made by trimtuner from the record as it stood at {escape(made)}.</p></footer>"
        f'<script type="application/json" id="logs">{_inert(kept)}</script><script type="module">{code}</script>',
    )


def page(title: str, head: str, body: str) -> str:
    """A whole page of HTML around its body."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} - trimtuner</title>{head}</head><body>{body}</body></html>"
    )


def section(view: View, content: str, version: str | None = None) -> str:
    """A view with its title, and the version of what it shows where that will change."""
    head = f'<h2 id="{view.name}-title">{escape(view.title)}</h2>'
    kept = "" if version is None else f' data-version="{escape(version, quote=True)}"'
    begin = f'<section id="{view.name}" class="{view.size}" aria-labelledby="{view.name}-title"{kept}>'
    return f'{begin}{head}<div class="body">{content}</div></section>'


def navigation() -> str:
    """Links to the sections of all views."""
    links = "".join(f'<a href="#{view.name}">{escape(view.title)}</a>' for view in every.VIEWS)
    return f'<nav aria-label="Views">{links}</nav>'


def goal_text(subject: StudyState) -> str:
    """What is sought, in one line."""
    goal = subject.problem.goal
    limits = " and ".join(constraint.text for constraint in subject.problem.constraints)
    return f"{goal}{f' with {limits}' if limits else ''}; method {subject.method}"


def style() -> str:
    """How pages and the pictures on them look."""
    return f"{asset('style.css')}{asset('chart.css')}"


def script() -> str:
    """What a page of views can do, as one module: the files in their order, without the lines that join them."""
    return "".join(_joined(asset(name)) for name in _MODULES)


def live_script() -> str:
    """The same, for a page that follows a study."""
    return f"{script()}{_joined(asset('live.js'))}"


def _joined(module: str) -> str:
    lines = (line for line in module.splitlines() if not line.startswith("import "))
    return "".join(f"{line.removeprefix('export ')}\n" for line in lines)


def asset(name: str) -> str:
    """A file of the page."""
    return resources.files("trimtuner.views").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _inert(text: str) -> str:
    """JSON that cannot end the element it stands in."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
