"""Single views as files: SVG that needs nothing else, PNG of twice its size, and a study in a notebook."""

import re
import struct
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

import trimtuner as tt
from trimtuner.views.every import drawn_views
from trimtuner.views.figures import Figure, figures
from trimtuner.views.notebook import study_html
from views.showing import HOSTILE, real_subject, reporting

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def subject():
    return real_subject()


@pytest.mark.parametrize("name", drawn_views())
def test_a_view_as_svg_has_its_colours_in_it(subject, name):
    for figure in figures(reporting(subject) if name == "within" else subject, name):
        ElementTree.fromstring(figure.svg)  # noqa: S314
        assert "var(" not in figure.svg
        assert "@media" not in figure.svg
        assert re.search(r"#[0-9a-f]{6}", figure.svg)


def test_a_png_has_the_signature_and_twice_the_size(subject, tmp_path):
    pytest.importorskip("resvg_py", reason="resvg-py is not installed; install trimtuner[report]")
    (figure,) = figures(subject, "tradeoff")
    written = figure.save(tmp_path / "tradeoff.png").read_bytes()
    assert written.startswith(PNG)
    width, height = (int(one) for one in re.search(r'viewBox="0 0 (\d+) (\d+)"', figure.svg).groups())
    assert struct.unpack(">II", written[16:24]) == (2 * width, 2 * height)


def test_a_picture_is_written_by_the_ending_of_its_name(subject, tmp_path):
    (figure,) = figures(subject, "timeline")
    assert figure.save(tmp_path / "a.svg").read_text() == figure.svg
    with pytest.raises(tt.InputError, match=r"\.svg or \.png, not as '\.gif'"):
        figure.save(tmp_path / "a.gif")


def test_a_png_has_letters_whatever_fonts_there_are(subject):
    """To resvg sans-serif is Arial, which few machines but desktops have."""
    pytest.importorskip("resvg_py")
    (figure,) = figures(subject, "tradeoff")
    silent = replace(figure, drawing=re.sub(r"<text.*?</text>", "", figure.drawing))
    assert figure.png() != silent.png()


def test_a_png_without_its_library_says_what_to_install(subject, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "resvg_py", None)
    with pytest.raises(tt.InputError, match=r"trimtuner\[report\]"):
        figures(subject, "spend")[0].png()


def test_a_view_that_is_none_is_named_with_the_nearest(subject):
    with pytest.raises(tt.InputError, match=r"there is no view 'tradeof'.*tradeoff"):
        figures(subject, "tradeof")


def test_a_study_shows_itself_and_its_recommendation_in_a_notebook(subject):
    shown = study_html(subject)
    assert "maximize accuracy" in shown
    assert "<caption>recommended</caption>" in shown
    assert shown.count("data:image/svg+xml;base64,") == 2
    assert "Nothing was measured yet" in tt.Study(tt.Space({"x": tt.Choice([1, 2])}), maximize="f")._repr_html_()


def test_what_a_notebook_shows_is_escaped():
    study = tt.Study(tt.Space({"x": tt.Choice(["<b>", HOSTILE])}), maximize="f", name=HOSTILE)
    for _ in range(2):
        study.tell(study.ask(), f=1.0, time=1.0)
    assert "<script" not in study._repr_html_()
    assert "<b>&lt;script" in study._repr_html_()
    assert "<script" not in study.recommend()._repr_html_()


def test_a_plot_is_a_figure_and_one_that_cannot_be_drawn_yet_says_so():
    study = tt.Study(tt.Space({"x": tt.Choice([1, 2, 3])}, fractions=[0.5, 1.0]), maximize="f")
    with pytest.raises(tt.NoAnswer, match="no picture of 'tradeoff': Nothing was measured yet"):
        study.plot()
    for _ in range(2):
        study.tell(study.ask(), f=1.0, time=1.0)
    assert isinstance(study.plot("tradeoff"), Figure)
    assert study.plot("timeline")._repr_svg_().startswith("<svg")


def test_where_there_are_no_machines_a_plot_of_them_says_so_and_not_that_more_is_needed():
    study = tt.Study(tt.Space({"x": tt.Choice([1, 2, 3])}, fractions=[0.5, 1.0]), maximize="f")
    study.tell(study.ask(), f=1.0, time=1.0)
    with pytest.raises(tt.NoAnswer, match="no picture of 'machines': This space has no machines"):
        study.plot("machines")


def test_what_needs_no_model_does_not_wait_for_one():
    study = tt.Study(tt.Space({"x": tt.Choice([1, 2, 3])}, fractions=[0.5, 1.0]), maximize="f")
    with pytest.raises(tt.NoAnswer, match="no picture of 'timeline': No trial was started yet"):
        study.plot("timeline")
    assert study.plot("spend").svg.startswith("<svg")
