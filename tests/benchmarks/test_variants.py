"""The harder forms of tables, and the worth of recommendations in them."""

import numpy as np
import pytest

from benchmarks.scoring import Scorer
from benchmarks.variants import VARIANTS, make_variant
from trimtuner.engines.table import Table
from trimtuner.errors import InputError
from trimtuner.problem.problem import Constraint
from trimtuner.study.replay import replay


@pytest.fixture(scope="module")
def digits():
    return Table.find("digits")


@pytest.fixture(scope="module")
def cnn():
    return Table.find("cnn")


def test_a_quarter_of_the_configurations_meets_the_tight_limit(digits):
    tight = make_variant("tight", digits, 0).measured
    limits = [Constraint.parse(text) for text in tight.constraints]
    met = [limits[0].is_met(cost) for cost in tight.full_run_costs()]
    assert np.mean(met) == pytest.approx(0.25, abs=0.01)
    assert len(limits) == len(digits.constraints)


def test_half_of_the_configurations_is_kept_whole_and_depends_on_the_seed(digits):
    one, same, other = (make_variant("half", digits, seed).measured for seed in (1, 1, 2))
    assert len(one.configurations) == len(digits.configurations) // 2
    assert len(one.cells) == len(one.configurations) * len(digits.space.fractions)
    assert one.configurations == same.configurations != other.configurations
    for configuration in one.configurations:
        assert one.space.price_per_hour(dict(configuration)) == digits.space.price_per_hour(dict(configuration))
        assert one.cell(configuration, 1.0) == digits.cell(configuration, 1.0)


def test_three_fractions_are_the_smallest_a_middle_one_and_all_data(digits):
    few = make_variant("three-fractions", digits, 0).measured
    assert len(few.space.fractions) == 3
    assert few.space.fractions[0] in (0.1, digits.space.fractions[0])
    assert few.space.fractions[-1] == 1.0
    assert {fraction for _, fraction in few.cells} == set(few.space.fractions)


def test_the_papers_tables_keep_a_tenth_a_half_and_all_data(cnn):
    assert make_variant("three-fractions", cnn, 0).measured.space.fractions == (0.1, 0.5, 1.0)


def test_noise_changes_accuracies_only_and_the_truth_stays(cnn):
    noisy = make_variant("noise", cnn, 3)
    assert noisy.truth is cnn
    changes = []
    for place, cell in noisy.measured.cells.items():
        assert {**cell.metrics, "accuracy": 0} == {**cnn.cells[place].metrics, "accuracy": 0}
        assert 0.0 <= cell.metrics["accuracy"] <= 1.0
        changes.append(cell.metrics["accuracy"] - cnn.cells[place].metrics["accuracy"])
    assert np.mean(changes) == pytest.approx(0.0, abs=4 * np.std(changes) / len(changes) ** 0.5)
    assert np.std(changes) > 0
    assert make_variant("noise", cnn, 3).measured == noisy.measured


def test_a_table_without_deviations_has_no_noise_variant(digits):
    with pytest.raises(InputError, match="its noise is not known"):
        make_variant("noise", digits, 0)


def test_an_unknown_variant_is_refused_with_those_known(digits):
    with pytest.raises(InputError, match="three-fractions"):
        make_variant("tite", digits, 0)


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "noise"])
def test_recommendations_are_worth_what_replay_says(digits, variant):
    form = make_variant(variant, digits, 5)
    run = replay(form.measured, "random", 5, 8)
    judged = Scorer(form.truth).rescore(run)
    assert [one.quality for one in judged.moments] == pytest.approx([one.quality for one in run.moments])
    assert [one.is_feasible for one in judged.moments] == [one.is_feasible for one in run.moments]


def test_noisy_measurements_are_judged_by_the_true_ones(cnn):
    form = make_variant("noise", cnn, 5)
    run = replay(form.measured, "random", 5, 3)
    judged = Scorer(form.truth).rescore(run)
    for moment in judged.moments:
        alone = Scorer(cnn).quality(moment.config)
        assert moment.quality == alone
    assert [one.spent for one in judged.moments] == [one.spent for one in run.moments]
