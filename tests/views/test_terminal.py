"""The views in the small: as wide as promised, and in plain letters where the terminal knows no more."""

import pytest

from trimtuner.problem.problem import Goal
from trimtuner.views.progress import ProgressPoint, progress, progress_line
from trimtuner.views.spend import Spend, money_bar, money_lines, spend
from trimtuner.views.timeline import Bar, timeline, timeline_lines
from trimtuner.views.words import ASCII, BLOCKS, signs_for
from views.showing import Money, real_subject

GOAL = Goal("accuracy", "maximize")


def spent(budget, paid, reserved=0.0):
    return Spend(Money(budget, paid, reserved), ((0.0, 0.0),), 1, 0, None, None)


def moment(usd, goal):
    return ProgressPoint(usd, 0.0, 0, {"x": goal}, goal, 1.0, True)


@pytest.mark.parametrize(
    ("view", "bar"),
    [
        (spent(10.0, 5.0, 2.5), "#" * 20 + "+" * 10 + "." * 10),
        (spent(10.0, 0.0), "." * 40),
        (spent(10.0, 12.0, 3.0), "#" * 40),
    ],
)
def test_the_bar_of_money_is_in_proportion_and_never_wider_than_forty(view, bar):
    assert money_bar(view, ASCII).startswith(f"[{bar}] ")


def test_without_a_budget_there_is_no_bar_but_words():
    assert money_bar(spent(None, 5.0, 1.0)) == "5 USD spent, 1 USD reserved, no budget"


def test_the_line_of_quality_rises_with_the_money():
    line = progress_line((moment(0.0, 0.1), moment(5.0, 0.9), moment(10.0, 0.9)), GOAL, ASCII)
    drawn = line[line.index("[") + 1 : line.index("]")]
    assert len(drawn) == 40
    assert drawn == "_" * 19 + "@" * 21
    assert "0.1 to 0.9 over 10.00 USD; now 0.9, changed twice" in line


def test_attempts_under_way_come_last_and_all_bars_are_of_one_width():
    bars = (
        Bar(0, 1, {}, 1.0, 0.0, 0.0, 10.0, False, None, "oom", 0.5),
        Bar(2, 1, {}, 1.0, 5.0, 5.0, 20.0, True, "2 x large", "running", 1.0),
        Bar(1, 2, {}, 1.0, 10.0, 10.0, 20.0, False, "1 x small", "ok", 0.5),
    )
    lines = timeline_lines(bars, ASCII)
    assert [line.split("|")[0].strip() for line in lines] == ["0", "1", "2"]
    assert {len(line.split("|")[1]) for line in lines} == {24}
    assert lines[1].split("|")[1] == " " * 12 + "#" * 12
    assert "ok (attempt 2), 10 s, 0.5 USD, 1 x small" in lines[1]
    assert "1 USD reserved" in lines[2]


def test_no_more_lines_than_asked_for():
    bars = tuple(Bar(number, 1, {}, 1.0, number, number, number + 1.0, False, None, "ok", 0.1) for number in range(20))
    assert len(timeline_lines(bars, ASCII, 4)) == 4
    assert timeline_lines((), ASCII) == ["no trial was started yet"]


def test_plain_letters_where_the_terminal_knows_no_more():
    assert signs_for("utf-8") is BLOCKS
    assert signs_for("UTF8") is BLOCKS
    assert signs_for("ascii") is signs_for(None) is signs_for("latin-1") is ASCII
    subject = real_subject()
    lines = money_lines(spend(subject), ASCII) + timeline_lines(timeline(subject), ASCII)
    assert all(line.isascii() for line in [*lines, progress_line(progress(subject), GOAL, ASCII)])
