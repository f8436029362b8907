"""What can be had: front, curves, machines and runner-up, from models that are sure of every number."""

import numpy as np
import pytest

import trimtuner as tt
from decisions.fakes import IDENTITY, LOG, belief_of, gaussian_over, problem_of, ran, space_of
from trimtuner.tuning.recipes import recipe_named
from trimtuner.views.answer import answers
from trimtuner.views.curves import curves
from trimtuner.views.machines import machines
from trimtuner.views.tradeoff import tradeoff
from views.showing import Money, known_subject, real_subject, subject_of

T_OF_TWO = 2.919986  # the 95th percentile of Student's t with two degrees of freedom, from tables
SPACE = space_of(4, prices=[3600.0] * 4)  # a dollar a second
SCORES = [0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 2.0, 4.0]  # at half of the data, then at all
SECONDS = [1.0, 1.0, 1.0, 1.0, 10.0, 20.0, 30.0, 40.0]


def shown(*constraints, **changes):
    return known_subject(SPACE, SCORES, SECONDS, *constraints, **changes)


def test_the_front_is_whatever_no_other_beats_in_both():
    view = tradeoff(shown())
    assert [(point.config["x"], point.is_on_front) for point in view.points] == [
        (0, True),
        (1, True),
        (2, False),
        (3, True),
    ]
    assert [point.x for point in view.points] == pytest.approx([10.0, 20.0, 30.0, 40.0], rel=1e-3)
    assert [point.y for point in view.points] == pytest.approx([1.0, 3.0, 2.0, 4.0], abs=1e-3)


def test_what_breaks_a_limit_is_not_on_the_front_and_the_limit_is_told():
    view = tradeoff(shown("cost <= 35 USD"))
    assert view.x_limits == (("cost <= 35 USD", 35.0),)
    assert [point.is_on_front for point in view.points] == [True, True, False, False]
    assert view.points[3].chance < 0.01
    assert [point.is_recommended for point in view.points] == [False, True, False, False]


def test_a_measured_target_lies_where_it_was_measured():
    outcome = ran(0, 2, 1.0, score=7.0, time=15.0, cost=15.0)
    point = tradeoff(shown(outcomes=[outcome])).points[2]
    assert (point.x, point.y, point.is_tested) == (15.0, 7.0, True)


def test_for_the_least_cost_the_other_axis_is_what_must_be_good_enough():
    told = [ran(0, 0, 0.5, score=0.0, time=1.0, cost=1.0)]
    view = tradeoff(shown("score >= 2.5", minimize="cost", outcomes=told))
    assert (view.x_metric, view.y_metric) == ("cost", "score")
    assert view.y_limits == (("score >= 2.5", 2.5),)


def test_the_answer_says_what_is_recommended_beside_the_runner_up_and_what_it_saves():
    view = answers(shown("cost <= 35 USD"))
    assert (view.best.config, view.runner_up.config) == ({"x": 1}, {"x": 2})
    assert view.best.estimates["score"].mean == pytest.approx(3.0, abs=1e-3)
    assert view.best.feasible["cost <= 35 USD"] == pytest.approx(1.0)
    assert "highest expected score" in view.why[0]
    assert "not tested itself" in view.why[1]
    assert "1 more score, 10.00 USD (33 %) less cost, 10 s (33 %) less time" in view.why[-1]


def test_where_nothing_meets_the_limits_the_answer_says_so():
    view = answers(shown("cost <= 5 USD"))
    assert view.best.chance_feasible < 0.5
    assert view.why[0] == "None of 4 configurations is likely to meet every limit; this one comes nearest."


def test_a_measured_recommendation_says_that_its_figures_are_measurements():
    view = answers(shown(outcomes=[ran(0, 3, 1.0, score=4.0, time=40.0, cost=40.0)]))
    assert view.best.is_measured
    assert view.why[1] == "It was measured on all of the data: its figures are measurements."


def test_the_command_is_that_of_the_recommendation_quoted_for_a_shell():
    subject = shown(command_of=lambda config, fraction: ("train", f"--x={config['x']} now", str(fraction)))
    assert answers(subject).command == "train '--x=3 now' 1.0"


def test_a_curve_goes_through_what_the_model_expects_with_nine_tenths_between_its_bounds():
    problem = problem_of(SPACE)
    quantities = {
        "score": (IDENTITY, gaussian_over(SPACE, SCORES, 0.75, noise=0.25)),
        "time": (LOG, gaussian_over(SPACE, 0.0)),
    }
    belief = belief_of(problem, quantities, [ran(0, 0, 0.5, score=0.5, time=1.0).measurements[0]])

    def offered(view):
        return [expected for fraction, expected in view.curves[0].band if fraction in (0.5, 1.0)]

    subject = subject_of(problem, belief=belief, recipe=recipe_named("trimtuner"))
    view = _curves_at_known_places(subject)
    half, whole = offered(view)
    assert (half.mean, whole.mean) == (pytest.approx(0.0), pytest.approx(4.0))
    assert whole.high - whole.mean == pytest.approx(T_OF_TWO, rel=1e-6)  # variance 0.75 and noise 0.25 make 1
    assert whole.mean - whole.low == pytest.approx(T_OF_TWO, rel=1e-6)


def _curves_at_known_places(subject):
    """The fake model knows the offered fractions only."""
    import trimtuner.views.curves as module

    before, module._fractions = module._fractions, lambda offered: np.array(sorted(offered))
    try:
        return curves(subject)[0]
    finally:
        module._fractions = before


def test_measured_points_of_a_real_study_are_on_their_curves():
    subject = real_subject()
    views = curves(subject)
    assert [view.metric for view in views] == ["accuracy", "cost"]
    measured = {(m.fraction, m.metrics["accuracy"]) for m in subject.history.measurements}
    assert {point for curve in views[0].curves for point in curve.measured} <= measured
    assert dict(views[0].curves[0].config) == dict(subject.recommendation.config)


def test_each_kind_of_machines_has_the_chance_of_its_best_configuration_and_its_count_of_trials():
    subject = real_subject()
    view = machines(subject)
    assert (view.vm_types, view.vm_counts, view.markets) == (("small", "large"), (1, 2), ("on_demand",))
    assert len(view.cells) == 4
    assert sum(cell.tested for cell in view.cells) == len(subject.trials)
    assert [cell.is_recommended for cell in view.cells].count(True) == 1
    belief = subject.belief
    for cell in view.cells:
        own = [
            belief.feasible_at(target)
            for target in range(len(belief.targets))
            if _is_on(belief.pool.configuration(int(belief.targets.positions[target])), cell)
        ]
        assert min(own) <= cell.chance <= max(own)


def _is_on(config, cell):
    return (config["vm_type"], config["vm_count"]) == (cell.vm_type, cell.vm_count)


def test_two_markets_are_two_maps():
    vm = tt.VM(4, 16, 1.0, spot_price_per_hour=0.4, spot_interruptions_per_hour=0.01)
    cloud = tt.Cloud({"a": vm}, vm_count=[1, 2], market=["on_demand", "spot"])
    study = tt.Study(
        tt.Space({"x": tt.Choice([1, 2])}, cloud=cloud, fractions=[0.5, 1.0]), minimize="cost", method="eic"
    )
    trial = study.ask()
    study.tell(trial, time=100.0)
    view = machines(study.state())
    assert view.markets == ("on_demand", "spot")
    assert {(cell.vm_count, cell.market) for cell in view.cells} == {(c, m) for c in (1, 2) for m in view.markets}


def test_a_space_without_machines_has_no_map_and_nothing_measured_has_no_views():
    assert machines(shown()) is None
    empty = subject_of(problem_of(SPACE), money=Money(None, 0.0, 0.0))
    assert empty.why_no_model == "Nothing was measured yet."
    assert (tradeoff(empty), curves(empty), machines(empty), answers(empty).best) == (None, (), None, None)


def test_a_model_that_would_take_minutes_is_not_fitted_but_named():
    outcomes = [ran(number, number, 1.0, score=1.0, time=1.0, cost=1.0) for number in range(3)]
    subject = known_subject(SPACE, SCORES, SECONDS, outcomes=outcomes, known=None, modelled_at_most=2)
    assert subject.belief is None
    assert "3 measurements would take minutes" in answers(subject).why[0]
