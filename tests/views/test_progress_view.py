"""The quality of what was recommended, over the money and the time that had passed by then."""

from dataclasses import replace

import pytest

import trimtuner as tt
from decisions.fakes import ran, space_of
from trimtuner.problem.history import Outcome, Trial
from trimtuner.problem.problem import Goal
from trimtuner.views.progress import progress, progress_line
from views.showing import attempt, known_subject

SPACE = space_of(3, prices=[3600.0] * 3)
SCORES, SECONDS = [0.0, 0.0, 0.0, 1.0, 2.0, 3.0], [1.0] * 6


def asked(number, position, recommended):
    found = None if recommended is None else ({"x": recommended}, 1.0)
    return Trial(number, {"x": position}, 0.5, (), "model", found)


def told(trial, cost):
    measured = ran(trial.number, trial.config["x"], 0.5, score=0.0, cost=cost, time=10.0).measurements
    return Outcome(trial, measured, None, cost, 10.0)


def searched(*recommended, **changes):
    """Trials that cost a dollar and ten seconds each, with what was recommended when each was asked."""
    outcomes = [told(asked(number, 0, one), 1.0) for number, one in enumerate(recommended)]
    return known_subject(SPACE, SCORES, SECONDS, outcomes=outcomes, **changes)


def test_each_moment_is_judged_by_what_is_known_now():
    view = progress(searched(0, 0, 1))
    assert [moment.goal for moment in view] == pytest.approx([1.0, 1.0, 2.0, 3.0], abs=1e-3)
    assert [moment.config["x"] for moment in view] == [0, 0, 1, 2]
    assert [moment.usd for moment in view] == [0.0, 1.0, 2.0, 3.0]
    assert [moment.seconds for moment in view] == [0.0, 10.0, 20.0, 30.0]


def test_changes_are_counted_from_the_first_recommendation_on():
    view = progress(searched(0, 0, 1))
    assert [moment.is_change for moment in view] == [True, False, True, True]
    assert "changed twice" in progress_line(view, Goal("score", "maximize"))


def test_money_is_what_had_ended_when_the_trial_was_asked():
    attempts = (
        attempt(0, 100.0, 100.0, 150.0, 1.0),
        attempt(1, 120.0, 120.0, 130.0, 2.0),
        attempt(2, 140.0, 140.0, 160.0, 4.0),
    )
    view = progress(searched(0, 0, 0, attempts=attempts, now=200.0))
    assert [moment.usd for moment in view] == [0.0, 0.0, 2.0, 7.0]
    assert [moment.seconds for moment in view] == [0.0, 20.0, 40.0, 60.0]  # at rest since the last end


def test_of_a_method_that_writes_none_down_the_best_measured_within_the_limits_stands_in():
    outcomes = [
        ran(0, 0, 1.0, score=1.0, time=1.0, cost=1.0),
        ran(1, 2, 1.0, score=3.0, time=9.0, cost=9.0),  # beyond the limit
        ran(2, 1, 1.0, score=2.0, time=1.0, cost=1.0),
    ]
    subject = known_subject(SPACE, SCORES, SECONDS, "cost <= 5 USD", outcomes=outcomes)
    view = progress(subject)
    assert [(moment.trial, moment.config["x"]) for moment in view] == [(1, 0), (3, 1), (3, 1)]


def test_before_anything_was_measured_there_is_no_progress():
    assert progress(known_subject(SPACE, SCORES, SECONDS, known=None)) == ()


def test_what_was_recommended_before_is_judged_although_it_has_left_the_pool():
    """Of a continuous space only a part is in the pool, and another part at every step."""
    space = tt.Space({"x": tt.Float(0.0, 1.0), "y": tt.Float(0.0, 1.0)}, fractions=[0.5, 1.0])
    study = tt.Study(space, maximize="score", method="trimtuner-dt")
    left = {"x": 0.123456789, "y": 0.987654321}  # of no pool
    for number in range(6):
        trial = study.ask()
        study.tell(trial, score=trial.config["x"], time=1.0)
        if number == 2:
            outcomes = study.history.outcomes
            asked = replace(outcomes[-1].trial, recommended=(left, 1.0))
            study.history = replace(study.history, outcomes=(*outcomes[:-1], replace(outcomes[-1], trial=asked)))
    subject = study.state()
    assert left not in subject.belief.pool
    (moment,) = [one for one in progress(subject) if dict(one.config) == left]
    assert 0.0 <= moment.goal <= 1.0  # trees predict within what they saw
    assert study.plot("progress").svg.startswith("<svg")
