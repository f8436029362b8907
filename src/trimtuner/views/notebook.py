"""How a study shows itself in a notebook: words, and pictures that style nothing but themselves."""

from __future__ import annotations

import base64
from html import escape

from trimtuner.state import StudyState
from trimtuner.views import every
from trimtuner.views.blocks import Picture, html_of, safely
from trimtuner.views.document import goal_text
from trimtuner.views.figures import Figure


def study_html(subject: StudyState) -> str:
    """Money, recommendation, and what the money bought."""
    parts = [f"<p><b>{escape(subject.name)}</b>: {escape(goal_text(subject))}</p>"]
    for view in every.VIEWS:
        for block in safely(view.in_notebook, subject) if view.in_notebook else ():
            parts.append(_image(block, view.title) if isinstance(block, Picture) else html_of([block]))
    return "".join(parts)


def _image(picture: Picture, title: str) -> str:
    figure = Figure(picture.name or title, picture.svg)
    source = f"data:image/svg+xml;base64,{base64.b64encode(figure.svg.encode()).decode()}"
    return f"<img alt='{escape(figure.name, quote=True)}' style='max-width: 44rem; width: 100%' src='{source}'>"
