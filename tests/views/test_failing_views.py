"""A view that fails says so in its place, and takes nothing else with it."""

from dataclasses import replace

import pytest

from trimtuner.state import StudyState
from trimtuner.views import document, every, markdown, notebook
from views.showing import real_subject


class BrokenError(RuntimeError):
    """A fault of ours."""


def breaks(_subject: StudyState) -> None:
    raise BrokenError("<b>no</b> such thing")


@pytest.fixture(autouse=True)
def broken_progress(monkeypatch):
    views = (replace(v, blocks=breaks, in_notebook=breaks) if v.name == "progress" else v for v in every.VIEWS)
    monkeypatch.setattr(every, "VIEWS", tuple(views))


def test_a_failing_view_leaves_the_rest_of_the_report_as_it_is():
    page = document.document(real_subject(trials=6))
    assert "BrokenError: &lt;b&gt;no&lt;/b&gt; such thing" in page
    assert "please report this line" in page
    for view in every.VIEWS:
        assert f'<section id="{view.name}"' in page
    assert "<table class='trials' " in page


def test_a_failing_part_leaves_the_rest_of_the_markdown_as_it_is():
    text = markdown.markdown(real_subject(trials=6))
    assert "BrokenError:" in text.split("## What the money bought")[1].split("##")[0]
    assert "| trial |" in text.split("## Trials")[1]


def test_a_failing_view_leaves_the_rest_of_the_notebook_as_it_is():
    shown = notebook.study_html(real_subject(trials=6))
    assert shown.count("BrokenError: &lt;b&gt;no") == 1
    assert "<caption>recommended</caption>" in shown
    assert shown.count("<img alt='tradeoff'") == 1
