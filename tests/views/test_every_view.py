"""The one list of views: what is in it is in report, Markdown, pictures and notebook, and on the page."""

import base64
import re
from types import SimpleNamespace

import pytest

import trimtuner as tt
from trimtuner.commands.dashboard import pages, renderer
from trimtuner.views import every
from trimtuner.views.blocks import Beside, Code, Drawn, Facts, Folded, Heading, Picture, TextTable, View
from trimtuner.views.document import document
from trimtuner.views.figures import figures
from trimtuner.views.markdown import markdown
from trimtuner.views.notebook import study_html
from views.showing import HOSTILE, real_subject

DRAWING = '<svg class="chart"><title>made up</title></svg>'


def _blocks(_subject):
    inside = [Picture(DRAWING, [("dot", HOSTILE)], HOSTILE, "made-up"), TextTable([HOSTILE], [["a cell"]])]
    kept = [
        Heading(HOSTILE),
        Facts({"made": "up"}),
        Code("a command"),
        Beside(inside),
        Folded("more", ["what is folded"]),
    ]
    return ["made up words", *kept, Drawn(["what is drawn"], ["what is written"])]


@pytest.fixture
def subject(monkeypatch):
    view = View("made-up", "A made-up view", "facts", _blocks, in_notebook=_blocks)
    monkeypatch.setattr(every, "VIEWS", (*every.VIEWS, view))
    return real_subject(trials=2)


def test_a_view_in_the_list_is_in_the_report(subject):
    section = document(subject).split('<section id="made-up"')[1].split("</section>")[0]
    assert '<h2 id="made-up-title">A made-up view</h2>' in section
    for words in ("made up words", DRAWING, "a command", "a cell", "what is folded", "what is drawn"):
        assert words in section
    assert "what is written" not in section
    assert "<script" not in section
    assert '<a href="#made-up">A made-up view</a>' in document(subject)


def test_a_view_in_the_list_is_in_the_markdown_without_what_is_drawn(subject):
    section = markdown(subject).split("## A made-up view\n")[1]
    for words in (
        "made up words",
        "- made: up",
        "```\na command\n```",
        "| a cell |",
        "what is folded",
        "what is written",
    ):
        assert words in section
    assert "what is drawn" not in section
    assert not re.search(r"(?<!\\)<", section)


def test_a_view_in_the_list_can_be_had_as_a_picture(subject):
    assert [(figure.name, figure.drawing) for figure in figures(subject, "made-up")] == [("made-up", DRAWING)]
    with pytest.raises(tt.InputError, match=r"pictures are .*trust, made-up"):
        figures(subject, "answer")


def test_a_view_in_the_list_shows_in_a_notebook_what_it_has_for_one(subject, monkeypatch):
    picture = Picture(DRAWING, name="made-up")
    monkeypatch.setattr(every, "VIEWS", (View("made-up", "", "facts", _blocks, in_notebook=lambda _: ["so", picture]),))
    (drawn,) = re.findall(r"<p>so</p><img alt='made-up' [^>]*base64,([^']+)'>", study_html(subject))
    assert b"<title>made up</title>" in base64.b64decode(drawn)


def test_a_view_in_the_list_has_a_place_on_the_page_and_is_rendered_with_those_of_its_effort(subject):
    shown = SimpleNamespace(name="shown", trouble="", said="", subject=None, made=lambda _view: None)
    page = pages.study_page(shown, 0, "", "")
    assert '<section id="made-up"' in page
    assert '<a href="#made-up">A made-up view</a>' in page
    assert "made up words" in renderer._html(subject, "facts")["made-up"]


def test_every_view_of_the_list_is_a_file_of_its_own_with_a_name_of_its_own():
    names = [view.name for view in every.VIEWS]
    assert len(set(names)) == len(names)
    assert [view.blocks.__module__ for view in every.VIEWS] == [f"trimtuner.views.{name}" for name in names]
