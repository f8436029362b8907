"""Tokens per second and per dollar: what was counted, over the time and money that were paid."""

import pytest

from decisions.fakes import ran, space_of
from trimtuner.views import speed
from trimtuner.views.markdown import markdown
from views.showing import known_subject

SCORES, SECONDS = [0.5, 0.7, 0.6, 0.8], [5.0, 10.0, 5.0, 10.0]


def subject(*outcomes):
    return known_subject(space_of(2), SCORES, SECONDS, outcomes=outcomes)


def test_rates_are_counts_over_the_seconds_and_the_dollars_of_the_whole_trial():
    (rate,) = speed.rates(subject(ran(0, 0, 0.5, score=0.5, time=8.0, cost=0.25, tokens=4000.0)))
    assert (rate.counted, rate.per_second, rate.per_usd) == ("tokens", 500.0, 16000.0)


def test_where_nothing_was_paid_there_is_no_rate_per_dollar_and_where_nothing_was_counted_none():
    free, uncounted = ran(0, 0, 0.5, score=0.5, time=8.0, images=400.0), ran(1, 1, 0.5, score=0.6, time=9.0)
    assert [(one.counted, one.per_usd) for one in speed.rates(subject(free, uncounted))] == [("images", None)]
    assert speed.VIEW.shown(subject(uncounted)) == [speed.VIEW.nothing]


def test_the_report_has_the_median_of_the_machines_and_the_recommendation():
    counted = [ran(n, n % 2, 1.0, score=0.5 + n % 2, time=4.0, cost=0.5, tokens=1000.0 * (n + 1)) for n in range(2)]
    lead, table = speed.VIEW.shown(subject(*counted))
    assert "start and end included" in lead
    assert table.heads == ["tokens per second", "tokens per USD", "of"]
    assert table.lines[0] == ["375", "3,000", "here, median of 2"]
    assert ["500", "4,000", "recommended: x=1"] in [list(line) for line in table.lines]
    assert "## Speed" in markdown(subject(*counted))


@pytest.mark.parametrize(("value", "text"), [(None, ""), (0.01234, "0.0123"), (12.34, "12.3"), (1.2345e6, "1,230,000")])
def test_rates_are_told_in_three_figures(value, text):
    assert speed._number(value) == text
