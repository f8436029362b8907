"""What runs now and what is wrong, trials at a glance, effects of parameters, curves within trials, many studies."""

from dataclasses import replace

import pytest

import trimtuner as tt
from trimtuner.problem.history import Measurement, Outcome, Trial
from trimtuner.state import ASKED_TO_STOP, Limits
from trimtuner.views import answer, now
from trimtuner.views.effects import effects
from trimtuner.views.now import running, troubles
from trimtuner.views.parallel import DATA, parallel_axes, parallel_lines
from trimtuner.views.spend import forecast_text, spend
from trimtuner.views.standing import against, standing_of
from trimtuner.views.timeline import Bar, lanes
from trimtuner.views.within import ways
from views.showing import attempt, real_subject, reporting


@pytest.fixture(scope="module")
def subject():
    return real_subject()


def test_how_far_a_trial_is_follows_from_what_it_reported(subject):
    (one,) = running(reporting(subject, [{"accuracy": 0.5, "fraction": 0.025}]))
    assert one.share == pytest.approx(0.025 / subject.history.pending[0].fraction)
    assert one.reported == "accuracy 0.5"
    assert one.seconds == 10.0


def test_without_reports_it_follows_from_what_others_took_on_as_much_data(subject):
    fraction = subject.history.pending[0].fraction
    (one,) = running(reporting(subject, []))
    times = sorted(o.time for o in subject.history.outcomes if o.trial.fraction == fraction and o.failed is None)
    middle = (times[(len(times) - 1) // 2] + times[len(times) // 2]) / 2
    assert one.share == pytest.approx(min(10.0 / middle, 0.99))


def test_that_no_run_is_at_work_is_said_unless_the_search_is_over(subject):
    resting = replace(subject, runs=0, history=replace(subject.history, pending=()), job_file="job.yaml")
    assert any("No run is at work; 'trimtuner run job.yaml'" in words for words in troubles(resting))
    assert not any("No run" in words for words in troubles(replace(resting, limits=Limits(trials=5))))
    assert not any("No run" in words for words in troubles(replace(resting, runs=1)))


def test_a_search_that_ended_by_itself_says_why_and_one_that_was_stopped_can_go_on(subject):
    resting = replace(subject, runs=0, history=replace(subject.history, pending=()), job_file="job.yaml")
    over = replace(resting, why_over="no trial is worth its price")
    assert "No run" not in now.VIEW.html(over)
    assert "The search is over: no trial is worth its price." in now.VIEW.html(over)
    assert "the last one ended: no trial is worth its price" in forecast_text(spend(over))
    stopped = replace(resting, why_over=ASKED_TO_STOP)
    assert any("No run is at work: it was asked to stop; 'trimtuner run" in words for words in troubles(stopped))
    assert "The search is over" not in now.VIEW.html(stopped)


def test_a_run_that_measured_nothing_and_blamed_the_command_is_not_a_search_that_is_over(subject):
    nothing = replace(subject.history, pending=(), outcomes=())
    why = "5 trials failed and none was measured, so it seems to be the command; mend it, and run again"
    blamed = replace(subject, runs=0, history=nothing, job_file="job.yaml", why_over=why)
    assert any(words.startswith(f"No run is at work: {why}") for words in troubles(blamed))
    assert "The search is over" not in now.VIEW.html(blamed)


def test_each_limit_is_shown_with_its_margin_before_a_model_is_fitted(subject):
    trial = next(one for one in reversed(subject.trials) if one.recommended is not None)
    config, fraction = trial.recommended
    limit = subject.problem.constraints[0]
    measured = Measurement(
        config, fraction, {**dict.fromkeys(subject.problem.metrics, 0.5), limit.metric: 0.75 * limit.limit}
    )
    outcome = Outcome(Trial(99, config, fraction), (measured,), None, 0.0, 1.0)
    history = replace(subject.history, outcomes=(*subject.history.outcomes, outcome))
    known = replace(subject, history=history, now=1.0, known=None, fit=None)
    told = answer.VIEW.html_at_once(known)
    assert limit.is_upper
    assert "(25 %) to spare" in told
    unknown = replace(
        known,
        history=replace(
            history, outcomes=tuple(one for one in history.outcomes if dict(one.trial.config) != dict(config))
        ),
    )
    assert "not measured of it on this much data" in answer.VIEW.html_at_once(unknown)


def test_trials_that_fail_lately_are_trouble_and_pre_empted_ones_are_not():
    study = tt.Study(
        tt.Space({"x": tt.Choice([1, 2, 3, 4, 5, 6])}, fractions=[0.5, 1.0]), maximize="f", method="random"
    )
    for kind in ("oom", "oom", "preempted"):
        study.tell(study.ask(), failed=kind, time=1.0)
    assert list(troubles(study.state())) == [
        "2 of the last 3 trials failed (2 x oom): look at the logs of 0, 1 below.",
    ]


def test_what_the_record_recommended_last_is_shown_with_its_age_and_what_was_measured_of_it(subject):
    trial = next(one for one in reversed(subject.trials) if one.recommended is not None)
    known = replace(subject, now=400.0, attempts=(attempt(trial.number, 100.0, 100.0, None),), known=None, fit=None)
    html = answer.VIEW.html_at_once(known)
    assert f"Recommended when trial {trial.number} was asked, 5.0 min ago." in html
    for name, value in trial.recommended[0].items():
        assert f"<dt>{name}</dt><dd>{value}</dd>" in html


def test_a_line_goes_through_every_value_of_its_trial_and_the_best_on_as_much_data_is_ranked_first(subject):
    lines = parallel_lines(subject)
    axes = {axis.name for axis in parallel_axes(lines)}
    assert {"x", "vm_type", "vm_count", DATA, "accuracy", "cost", "time"} >= axes
    for fraction in (0.1, 1.0):
        own = [one for one in lines if one.rank is not None and one.row.fraction == fraction]
        best = max(own, key=lambda one: one.row.metrics["accuracy"])
        assert best.rank == max(one.rank for one in own)
    assert {one.row.state for one in lines if one.rank is None} == {"oom", "preempted"}


def test_the_effect_of_a_parameter_rises_where_the_goal_does(subject):
    view = effects(subject)
    (own,) = [one for one in view.effects if one.parameter == "x"]
    assert [word for word, *_ in own.points] == ["1", "2", "3"]
    means = [mean for _, mean, _, _ in own.points]
    assert means == sorted(means)  # accuracy is 0.6 + 0.1 x on all of the data
    assert all(low <= mean <= high for _, mean, low, high in own.points)


def test_the_interaction_is_of_the_two_that_matter_most_and_has_every_pair(subject):
    view = effects(subject)
    assert (view.together.across, view.together.down) == tuple(one.parameter for one in view.effects[:2])
    assert len(view.together.means) == len(view.together.down_values)
    assert all(value is not None for line in view.together.means for value in line)


def test_a_trial_that_reported_on_its_way_is_a_curve_and_a_running_one_too(subject):
    (one,) = ways(reporting(subject))
    assert one.points == ((1.0, 0.1), (2.0, 0.3))
    assert one.is_running


def test_bars_whose_times_overlap_on_the_same_machines_lie_in_lanes_of_their_own():
    def bar(trial, begin, end, where):
        return Bar(trial, 1, {}, 1.0, begin, begin, end, False, where, "ok", 0.0)

    bars = (bar(0, 0, 10, "a"), bar(1, 5, 15, "a"), bar(2, 10, 20, "a"), bar(3, 0, 5, "b"))
    names, lane_of = lanes(bars)
    assert names == ["a", "a", "b"]
    assert lane_of == [0, 1, 0, 2]


def test_a_study_in_one_line_has_its_best_within_the_limits(subject):
    found = standing_of(subject)
    within = [
        m.metrics["accuracy"] for m in subject.history.measurements if m.fraction == 1.0 and m.metrics["cost"] <= 0.06
    ]
    assert found.best is not None
    assert found.best.metrics["accuracy"] == max(within)
    assert (found.ended, found.running) == (len(subject.history.outcomes), 1)
    table, picture = against([found, replace(found, name="other")])
    assert [len(line) for line in table.lines] == [3] * len(table.lines)
    assert picture.svg.count('class="line series') == 2
