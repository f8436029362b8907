"""How a study shows itself in a notebook: words, and pictures that style nothing but themselves."""

from __future__ import annotations

import base64
from html import escape

from trimtuner.state import StudyState
from trimtuner.views.document import goal_text
from trimtuner.views.figures import figures
from trimtuner.views.spend import spend
from trimtuner.views.terminal import money_bar
from trimtuner.views.words import words_instead


def study_html(subject: StudyState) -> str:
    """Money, recommendation, and what the money bought."""
    view = spend(subject)
    parts = [
        f"<p><b>{escape(subject.name)}</b>: {escape(goal_text(subject))}</p>",
        f"<p>{escape(money_bar(view))}; {view.ended} trials ended, {view.running} running</p>",
    ]
    if subject.recommendation is None:
        return "".join([*parts, "<p>Nothing was measured yet.</p>"])
    parts.append(subject.recommendation._repr_html_())
    for name in ("progress", "tradeoff"):
        try:
            parts += [_image(figure.svg, figure.name) for figure in figures(subject, name)]
        except Exception as error:  # a picture that fails takes nothing else with it
            parts.append(f"<p>{escape(words_instead(error))}</p>")
    return "".join(parts)


def _image(svg: str, name: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    source = f"data:image/svg+xml;base64,{data}"
    return f"<img alt='{escape(name, quote=True)}' style='max-width: 44rem; width: 100%' src='{source}'>"
