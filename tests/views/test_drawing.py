"""Pictures: laws of the axes, and SVG that is well formed, plain and inert."""

import itertools
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtuner.views.blocks import pictures_of
from trimtuner.views.drawing.chart import Chart, across, up
from trimtuner.views.drawing.marks import Mark
from trimtuner.views.drawing.scales import Scale, kind_for, scale_for, tick_text
from trimtuner.views.drawing.svg import element, text, title
from trimtuner.views.every import VIEWS
from trimtuner.views.figures import figures
from views.showing import HOSTILE, real_subject, reporting

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
positive = st.floats(1e-6, 1e6)
kinds = st.sampled_from(["linear", "log"])


@pytest.fixture(scope="module")
def subject():
    return real_subject()


@given(st.lists(positive, min_size=1, max_size=20), kinds)
def test_an_axis_holds_all_its_values_in_order(values, kind):
    scale = scale_for(values, 50.0, 650.0, kind)
    places = [scale(value) for value in sorted(values)]
    assert all(50.0 <= place <= 650.0 for place in places)
    assert places == sorted(places)


@given(st.lists(numbers, min_size=1, max_size=20))
def test_an_axis_that_runs_up_the_page_falls_in_its_numbers(values):
    scale = scale_for(values, 300.0, 20.0)
    places = [scale(value) for value in sorted(values)]
    assert places == sorted(places, reverse=True)


@given(st.lists(positive, min_size=2, max_size=9), kinds, st.integers(2, 9))
def test_ticks_are_round_inside_the_axis_rising_and_told_apart(values, kind, about):
    scale = scale_for(values, 0.0, 100.0, kind)
    ticks = scale.ticks(about)
    slack = 1e-6 * (scale.high - scale.low)
    assert all(scale.low - slack <= tick <= scale.high + slack for tick in ticks)
    assert ticks == sorted(set(ticks))
    assert len(ticks) <= 3 * about + 4
    told = [tick_text(tick, ticks) for tick in ticks]
    assert len(set(told)) == len(told)
    assert [float(words) for words in told] == pytest.approx(ticks, rel=1e-4, abs=slack)


@given(positive, positive, st.floats(0.0, 1.0), kinds)
def test_a_place_leads_back_to_its_number(one, other, part, kind):
    low, high = sorted((one, other))
    if high < 1.001 * low:
        return
    scale = Scale(low, high, 10.0, 20.0, kind)
    value = low + part * (high - low) if kind == "linear" else low * (high / low) ** part
    assert scale(value) == pytest.approx(10.0 + 10.0 * part, abs=1e-6)


def test_values_that_spread_widely_get_a_logarithmic_axis():
    assert kind_for([1.0, 100.0]) == "log"
    assert kind_for([1.0, 10.0]) == "linear"
    assert kind_for([0.0, 1000.0]) == "linear"


@given(st.text(max_size=50))
def test_whatever_is_written_is_only_text(words):
    written = "".join(sign for sign in words if sign.isprintable())
    for made in (text(written, 1, 2), title(written), element("g", text(written, 0, 0), aria_label=written)):
        root = ElementTree.fromstring(made)  # noqa: S314  (our own)
        assert "".join(root.itertext()) == written


def test_words_of_ticks_do_not_run_into_each_other():
    chart = Chart(
        across([0.0, 1.0]), up([0.0, 1.0]), "x", "y", "name", x_ticks=[(n / 100, f"number {n}") for n in range(100)]
    )
    places = sorted(float(place) for place in re.findall(r'x="([\d.]+)" y="293" class="tick x"', chart.svg()))
    assert 2 < len(places) < 20
    assert min(right - left for left, right in itertools.pairwise(places)) > 55


@pytest.mark.parametrize("view", [view for view in VIEWS if view.is_drawn], ids=lambda view: view.name)
def test_every_picture_is_well_formed_and_has_neither_style_nor_script_nor_address(subject, view):
    found = list(pictures_of(view.blocks(reporting(subject) if view.name == "within" else subject)))
    assert found, "there is something to draw"
    for picture in found:
        root = ElementTree.fromstring(picture.svg)  # noqa: S314
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.attrib["role"] == "img"
        assert root.attrib["aria-label"]
        for part in root.iter():
            assert part.tag.split("}")[1] in {"svg", "g", "path", "rect", "circle", "text", "title"}
            assert not {key for key in part.attrib if key == "style" or key.startswith("on") or "href" in key}
            assert "nan" not in " ".join(part.attrib.values()).lower().split()


def test_a_point_that_can_be_picked_says_what_it_is(subject):
    (picture,) = figures(subject, "tradeoff")
    marks = re.findall(r'<(?:circle|path)[^>]*data-c="[0-9a-f]+"[^>]*><title>([^<]+)</title>', picture.drawing)
    assert len(marks) == 12  # three values of x on two types of machines, one or two of them
    assert all("vm_type=" in words and "accuracy" in words and "P(limits)" in words for words in marks)
    assert sum(words.startswith("recommended, ") for words in marks) == 1


def test_hostile_words_in_a_chart_stay_words():
    chart = Chart(across([0.0, 1.0]), up([0.0, 1.0]), HOSTILE, HOSTILE, HOSTILE)
    chart.dot(0.5, 0.5, "tested", Mark(HOSTILE, HOSTILE))
    chart.level(0.5, "limit", HOSTILE)
    chart.upright(0.5, "limit", HOSTILE)
    assert "<script" not in chart.svg()
    ElementTree.fromstring(chart.svg())  # noqa: S314
