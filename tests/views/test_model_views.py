"""Which parameters matter, and whether the model can be trusted: shares of known functions, and counted cases."""

import itertools

import numpy as np
import pytest

from trimtuner.errors import SearchOver
from trimtuner.views.importance import _group, _importance, explained, explained_of_sample, importance
from trimtuner.views.trust import BINS, _calibration, stop_state, trust
from views.showing import real_subject


def grid(*sizes):
    return np.array(list(itertools.product(*(range(size) for size in sizes))))


def shares_of(values, places):
    groups = {f"p{axis}": places[:, axis] for axis in range(places.shape[1])}
    return _importance("f", values, groups, explained)


def test_an_additive_function_is_shared_by_the_squares_of_its_slopes():
    places = grid(40, 40)
    found = shares_of(3.0 * places[:, 0] + places[:, 1], places)
    assert dict(found.shares) == pytest.approx({"p0": 0.9, "p1": 0.1})
    assert found.together == pytest.approx(0.0)


def test_a_product_of_signs_is_explained_by_nothing_alone():
    places = grid(2, 2, 25)
    signs = 2 * places - 1
    found = shares_of((signs[:, 0] * signs[:, 1]).astype(float), places)
    assert [share for _, share in found.shares] == pytest.approx([0.0] * 3)
    assert found.together == pytest.approx(1.0)


def test_in_a_sample_a_parameter_without_effect_has_next_to_no_share():
    generator = np.random.default_rng(0)
    group, values = generator.integers(20, size=400), generator.normal(size=400)
    assert explained(values, group) > 0.03
    assert explained_of_sample(values, group) < 0.02


def test_what_never_changes_has_no_share():
    found = shares_of(np.full(9, 2.0), grid(3, 3))
    assert ([share for _, share in found.shares], found.together) == ([0.0, 0.0], 0.0)


def test_a_parameter_of_many_values_is_put_into_bins_of_equal_size():
    groups = _group(list(np.linspace(0.0, 1.0, 80)))
    assert np.bincount(groups).tolist() == [10] * 8
    assert (np.diff(groups) >= 0).all()


def test_absent_values_of_a_conditional_parameter_are_a_group_of_their_own():
    assert _group([None, 1, 1, None, 2]).tolist() == [0, 1, 1, 0, 2]


def test_a_real_study_has_shares_between_none_and_all_for_each_metric():
    found = importance(real_subject())
    assert [one.metric for one in found] == ["accuracy", "cost", "time"]
    for one in found:
        shares = [share for _, share in one.shares]
        assert shares == sorted(shares, reverse=True)
        assert all(0.0 <= share <= 1.0 + 1e-9 for share in shares)


def test_cases_are_counted_in_the_bin_of_the_probability_that_was_said():
    found = _calibration([(0.05, False), (0.6, True), (0.65, False), (1.0, True), (0.95, True)])
    assert [(one.low, one.count) for one in found] == [(0.0, 1), (0.5, 2), (0.9, 2)]
    assert [one.held for one in found] == [0.0, 0.5, 1.0]
    assert found[1].said == pytest.approx(0.625)


def test_the_bins_cover_every_probability_once():
    assert BINS[0][0] == 0.0
    assert BINS[-1][1] == 1.0
    assert all(one[1] == other[0] for one, other in itertools.pairwise(BINS))


def test_every_measurement_is_checked_by_a_model_that_has_not_seen_its_trial():
    subject = real_subject()
    view = trust(subject)
    told = [outcome.trial.number for outcome in subject.history.outcomes for _ in outcome.measurements]
    assert [check.trial for check in view.checks["accuracy"]] == sorted(told)
    assert 0.0 <= view.coverage("accuracy") <= 1.0
    assert sum(one.count for one in view.calibration) == len(told)


def test_too_few_trials_to_check_are_said_to_be_too_few():
    view = trust(real_subject(trials=3))
    assert view.checks == {}
    assert view.note == "It takes 4 measured trials to check the model; there are 3."


def test_the_stop_rule_says_why_it_is_over(monkeypatch):
    subject = real_subject(trials=5)
    assert stop_state(subject) == "The search goes on: no stop rule says that it is enough."

    def over(*_):
        raise SearchOver("the search is over: it is enough")

    monkeypatch.setattr("trimtuner.views.trust.tuner.ask", over)
    assert stop_state(subject) == "The search is over: it is enough."
