"""A view that fails says so in its place, and takes nothing else with it."""

from dataclasses import replace

import pytest

from trimtuner.state import StudyState
from trimtuner.views import catalogue, document, markdown, notebook
from views.showing import real_subject


class BrokenError(RuntimeError):
    """A fault of ours."""


def breaks(_subject: StudyState) -> None:
    raise BrokenError("<b>no</b> such thing")


@pytest.fixture
def broken_progress(monkeypatch):
    views = tuple(
        replace(view, render=breaks, pictures=breaks) if view.name == "progress" else view for view in catalogue.VIEWS
    )
    for module in (catalogue, document):
        monkeypatch.setattr(module, "VIEWS", views)
    monkeypatch.setattr(markdown, "progress", breaks)


@pytest.mark.usefixtures("broken_progress")
def test_a_failing_view_leaves_the_rest_of_the_report_as_it_is():
    page = document.document(real_subject(trials=6))
    assert "BrokenError: &lt;b&gt;no&lt;/b&gt; such thing" in page
    assert "please report this line" in page
    for view in catalogue.VIEWS:
        assert f'<section id="{view.name}"' in page
    assert "<table class='trials'>" in page


@pytest.mark.usefixtures("broken_progress")
def test_a_failing_part_leaves_the_rest_of_the_markdown_as_it_is():
    text = markdown.markdown(real_subject(trials=6))
    assert "BrokenError:" in text.split("## What the money bought")[1].split("##")[0]
    assert "| trial |" in text.split("## Trials")[1]


def test_a_failing_picture_leaves_the_rest_of_the_notebook_as_it_is(monkeypatch):
    monkeypatch.setattr(notebook, "figures", lambda subject, _name: breaks(subject))
    shown = notebook.study_html(real_subject(trials=6))
    assert shown.count("BrokenError: &lt;b&gt;no") == 2
    assert "recommended" in shown
