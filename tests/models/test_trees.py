"""Trees: what `grow` promises of every split, and what the ensemble adds to read it as a Gaussian."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtuner.models.forest import Forest, OneThreshold, SomeColumns, grow
from trimtuner.models.kernels import linear_basis, log_basis, quadratic_basis
from trimtuner.models.posterior import Conditioned
from trimtuner.models.trees import BaggedTrees, PlainTrees

COLUMNS = 3
seeds = st.integers(0, 10_000)


def _rows(seed, count):
    """Distinct rows: configurations on a grid of eighths, some fractions, no row twice."""
    generator = np.random.default_rng(seed)
    several = np.column_stack(
        [generator.integers(0, 9, (4 * count, COLUMNS)) / 8.0, generator.choice([0.1, 0.25, 0.5], 4 * count)]
    )
    distinct = np.unique(several, axis=0)
    return distinct[generator.permutation(len(distinct))[:count]]


def _keys(seed, trees):
    """One key a tree, from which all its thresholds follow."""
    return np.random.default_rng([seed, 4]).integers(2**63, size=trees, dtype=np.uint64)


def _forest(seed, count=15, trees=4, weights=None):
    generator = np.random.default_rng([seed, 1])
    rows = _rows(seed, count)
    residuals = generator.normal(size=(trees, len(rows)))
    weights = np.ones((trees, len(rows))) if weights is None else weights
    return grow(rows, residuals, weights, _keys(seed, trees), OneThreshold()), rows, residuals


def _bootstrap_weights(seed, trees, count):
    generator = np.random.default_rng([seed, 2])
    return np.array([np.bincount(generator.integers(0, count, count), minlength=count) for _ in range(trees)], float)


def _walk(forest, tree, row):
    """The leaf of one row, one node at a time, as a reader would follow it."""
    node = tree
    while forest.feature[node] >= 0:
        goes_left = row[forest.feature[node]] <= forest.threshold[node]
        node = forest.left[node] if goes_left else forest.right[node]
    return node


@given(seeds)
def test_a_fully_grown_tree_reproduces_every_measurement(seed):
    forest, rows, residuals = _forest(seed)
    np.testing.assert_array_equal(forest.predict(rows), residuals)


@given(seeds)
def test_each_tree_reproduces_the_measurements_that_it_drew(seed):
    weights = _bootstrap_weights(seed, 4, 15)
    forest, rows, residuals = _forest(seed, weights=weights)
    drawn = weights > 0
    np.testing.assert_allclose(forest.predict(rows)[drawn], residuals[drawn], rtol=1e-12)


@given(seeds)
def test_measurements_that_were_not_drawn_leave_no_trace(seed):
    weights = _bootstrap_weights(seed, 4, 15)
    rows, residuals = _rows(seed, 15), np.random.default_rng([seed, 1]).normal(size=(4, 15))
    corrupted = np.where(weights > 0, residuals, 1e6)
    queries = np.random.default_rng([seed, 3]).random((20, COLUMNS + 1))
    one, other = (grow(rows, targets, weights, _keys(seed, 4), OneThreshold()) for targets in (residuals, corrupted))
    np.testing.assert_array_equal(one.predict(queries), other.predict(queries))


@given(seeds)
def test_predictions_lie_between_the_least_and_the_greatest_residual(seed):
    forest, _, residuals = _forest(seed)
    predictions = forest.predict(np.random.default_rng([seed, 3]).uniform(-1.0, 2.0, (40, COLUMNS + 1)))
    assert (predictions >= residuals.min(axis=1, keepdims=True)).all()
    assert (predictions <= residuals.max(axis=1, keepdims=True)).all()


@given(seeds)
def test_predict_equals_a_walk_through_the_nodes(seed):
    forest, _, _ = _forest(seed, weights=_bootstrap_weights(seed, 4, 15))
    queries = np.random.default_rng([seed, 3]).uniform(-0.5, 1.5, (25, COLUMNS + 1))
    expected = [[forest.value[_walk(forest, tree, row)] for row in queries] for tree in range(forest.count)]
    np.testing.assert_array_equal(forest.predict(queries), expected)


def test_a_row_on_the_threshold_goes_left():
    """As in growing; one split at 0.5 of the second column, 10 to the left and 20 to the right."""
    forest = Forest(
        feature=np.array([1, -1, -1]),
        threshold=np.array([0.5, 0.0, 0.0]),
        left=np.array([1, 1, 2]),
        right=np.array([2, 1, 2]),
        value=np.array([15.0, 10.0, 20.0]),
        count=1,
    )
    rows = np.array([[0.9, 0.4, 1.0], [0.9, 0.5, 1.0], [0.1, 0.6, 1.0]])
    np.testing.assert_array_equal(forest.predict(rows), [[10.0, 10.0, 20.0]])


@given(seeds)
def test_both_children_of_every_split_hold_a_measurement(seed):
    weights = _bootstrap_weights(seed, 4, 15)
    forest, rows, _ = _forest(seed, weights=weights)
    visits = np.zeros(len(forest.feature), dtype=int)
    for tree in range(forest.count):
        for row in rows[weights[tree] > 0]:
            node = tree
            visits[node] += 1
            while forest.feature[node] >= 0:
                goes_left = row[forest.feature[node]] <= forest.threshold[node]
                node = forest.left[node] if goes_left else forest.right[node]
                visits[node] += 1
    assert (visits > 0).all()


@given(seeds)
def test_every_node_but_the_roots_is_the_child_of_exactly_one_split(seed):
    forest, _, _ = _forest(seed)
    is_split = forest.feature >= 0
    children = np.sort(np.concatenate([forest.left[is_split], forest.right[is_split]]))
    np.testing.assert_array_equal(children, np.arange(forest.count, len(forest.feature)))


@given(seeds)
def test_a_leaf_holds_the_weighted_mean_of_what_it_cannot_part(seed):
    """One row measured three times, drawn once, twice and not at all: (1·3 + 2·9) / 3 = 7."""
    rows = np.full((3, COLUMNS + 1), 0.5)
    forest = grow(rows, np.array([[3.0, 9.0, 100.0]]), np.array([[1.0, 2.0, 0.0]]), _keys(seed, 1), OneThreshold())
    np.testing.assert_allclose(forest.predict(rows), [[7.0, 7.0, 7.0]])


def test_no_column_is_preferred_for_its_place():
    """Two samples are parted alike by every column; over 3000 trees each of four columns gets its quarter.

    Within 4.5 standard errors of a binomial share, √(0.25·0.75/3000).
    """
    trees = 3000
    rows = np.array([[0.0, 0.0, 0.0, 0.1], [1.0, 1.0, 1.0, 0.5]])
    forest = grow(rows, np.tile([0.3, 0.7], (trees, 1)), np.ones((trees, 2)), _keys(0, trees), OneThreshold())
    shares = np.bincount(forest.feature[:trees], minlength=4) / trees
    assert np.abs(shares - 0.25).max() < 4.5 * np.sqrt(0.25 * 0.75 / trees)


def test_the_column_that_explains_the_targets_is_split_first():
    """A step in one column among noise columns: a threshold anywhere in the gap beats any other column's split."""
    generator = np.random.default_rng(0)
    rows = generator.random((40, COLUMNS + 1))
    rows[:, 1] = np.repeat([0.0, 1.0], 20)
    forest = grow(rows, np.tile(np.repeat([0.0, 5.0], 20), (50, 1)), np.ones((50, 40)), _keys(0, 50), OneThreshold())
    assert (forest.feature[:50] == 1).all()


def test_the_split_that_explains_the_most_variance_is_taken():
    """One against five gains 2²·(1/1 + 1/5) = 4.8; three against three only 2.2²·(1/3 + 1/3) ≈ 3.2."""
    targets = np.array([2.0, 0.1, 0.1, -0.8, -0.7, -0.7])
    one_apart, three_apart = np.array([1.0, 0, 0, 0, 0, 0]), np.array([1.0, 1, 1, 0, 0, 0])
    rows = np.column_stack([three_apart, one_apart, np.full(6, 0.5)])
    forest = grow(rows, np.tile(targets, (30, 1)), np.ones((30, 6)), _keys(0, 30), OneThreshold())
    assert (forest.feature[:30] == 1).all()


def test_the_two_children_of_a_split_draw_thresholds_of_their_own():
    """On the corners of a square both children have the same range left, so only the draws can differ."""
    rows = np.array([[a, b, 0.5] for a in (0.0, 1.0) for b in (0.0, 1.0)])
    forest = grow(rows, np.tile([1.0, 2.0, 4.0, 8.0], (30, 1)), np.ones((30, 4)), _keys(0, 30), OneThreshold())
    left, right = forest.left[:30], forest.right[:30]
    assert (forest.feature[left] == forest.feature[right]).all()
    assert (forest.threshold[left] != forest.threshold[right]).all()


def test_values_one_rounding_step_apart_never_leave_a_child_empty():
    """The threshold may round up to the greater value, and would then part nothing from all."""
    rows = np.array([[1.0, 0.5], [np.nextafter(1.0, 2.0), 0.5]])
    residuals = np.tile([0.0, 1.0], (50, 1))
    forest = grow(rows, residuals, np.ones((50, 2)), _keys(0, 50), OneThreshold())
    parted = forest.feature[:50] >= 0
    np.testing.assert_array_equal(forest.predict(rows)[parted], residuals[parted])
    np.testing.assert_array_equal(forest.predict(rows)[~parted], np.full((int((~parted).sum()), 2), 0.5))


def test_thresholds_fall_within_the_range_of_their_column():
    forest, rows, _ = _forest(0, count=30, trees=20)
    is_split = forest.feature >= 0
    feature, threshold = forest.feature[is_split], forest.threshold[is_split]
    assert (threshold >= rows.min(axis=0)[feature]).all()
    assert (threshold < rows.max(axis=0)[feature]).all()


def _measurements(seed=0):
    """Ten configurations at three fractions each."""
    generator = np.random.default_rng(seed)
    configurations = generator.random((10, COLUMNS))
    rows = np.array([[*configuration, fraction] for configuration in configurations for fraction in (0.05, 0.2, 0.5)])
    return rows, np.sin(4.0 * rows[:, 0]) + 0.6 * np.log10(rows[:, -1]) + generator.normal(scale=0.05, size=30)


def _fitted(seed=0):
    rows, targets = _measurements(seed)
    [posterior] = BaggedTrees().fit(rows, targets, None, np.random.default_rng(seed)).members
    return posterior, rows


def _covariance_over_members(posterior, rows):
    values = np.array(
        [
            [
                posterior.forest.value[_walk(posterior.forest, tree, row)]
                + posterior.lines[tree] @ [1.0, np.log10(row[-1]) / 2.0]
                for row in rows
            ]
            for tree in range(posterior.forest.count)
        ]
    )
    return np.cov(values.T, bias=True)


def test_fractions_of_an_untested_configuration_share_the_unexplained_variance():
    posterior, _ = _fitted()
    rows = np.array([[0.31, 0.62, 0.93, 0.05], [0.31, 0.62, 0.93, 1.0]])
    expected = _covariance_over_members(posterior, rows)[0, 1] + posterior.unexplained
    assert posterior.covariance(rows, rows)[0, 1] == pytest.approx(expected)


def test_fractions_of_a_tested_configuration_share_only_what_the_members_do():
    posterior, tested = _fitted()
    rows = np.array([tested[0], [*tested[0, :-1], 1.0]])
    expected = _covariance_over_members(posterior, rows)[0, 1]
    assert posterior.covariance(rows, rows)[0, 1] == pytest.approx(expected, abs=1e-12)


def test_two_untested_configurations_share_only_what_the_members_do():
    posterior, _ = _fitted()
    rows = np.array([[0.31, 0.62, 0.93, 1.0], [0.32, 0.62, 0.93, 1.0]])
    expected = _covariance_over_members(posterior, rows)[0, 1]
    assert posterior.covariance(rows, rows)[0, 1] == pytest.approx(expected, abs=1e-12)


def test_an_untested_configuration_is_less_certain_than_its_members_agreement():
    posterior, _ = _fitted()
    row = np.array([[0.31, 0.62, 0.93, 1.0]])
    spread_of_members = float(_covariance_over_members(posterior, row))
    assert posterior.predict(row).variance[0] >= spread_of_members + posterior.unexplained


def test_testing_one_fraction_of_an_untested_configuration_teaches_about_full_data():
    posterior, _ = _fitted()
    cheap, full = np.array([[0.31, 0.62, 0.93, 0.05]]), np.array([[0.31, 0.62, 0.93, 1.0]])
    after = Conditioned(posterior, cheap, posterior.predict(cheap).mean)
    assert after.predict(full).variance[0] < 0.5 * posterior.predict(full).variance[0]


def test_the_mean_is_the_mean_over_members():
    posterior, rows = _fitted()
    lines = posterior.lines[:, :1] + posterior.lines[:, 1:] * log_basis(rows[:, -1])
    np.testing.assert_allclose(posterior.predict(rows).mean, (posterior.forest.predict(rows) + lines).mean(axis=0))


def test_the_slope_comes_from_within_configurations():
    """Good configurations tested on little data, bad ones on much: pooled, accuracy seems to fall with data."""
    generator = np.random.default_rng(0)
    configurations = generator.random((8, COLUMNS))
    places = [(position, s) for position in range(8) for s in (0.02 * 1.6**position, 0.04 * 1.6**position)]
    rows = np.array([[*configurations[position], s] for position, s in places])
    growth = 0.5
    targets = np.array([-1.0 * position + growth * np.log10(s) / 2.0 for position, s in places])
    pooled_slope = np.polyfit(log_basis(rows[:, -1]), targets, 1)[0]
    assert pooled_slope < 0
    [posterior] = BaggedTrees().fit(rows, targets, None, generator).members
    slopes = posterior.lines[:, 1]
    # Shrunk towards no trend where a member drew few pairs, but never past it, and never beyond the truth.
    assert (slopes >= -1e-12).all()
    assert (slopes <= growth + 1e-12).all()
    assert slopes.mean() > 0.5 * growth


def test_one_fraction_for_each_configuration_gives_no_trend():
    generator = np.random.default_rng(0)
    rows = np.column_stack([generator.random((12, COLUMNS)), np.linspace(0.1, 1.0, 12)])
    [posterior] = BaggedTrees().fit(rows, np.linspace(0.0, 5.0, 12), None, generator).members
    np.testing.assert_allclose(posterior.lines[:, 1], 0.0, atol=1e-9)


@pytest.mark.parametrize("basis", [log_basis, linear_basis, quadratic_basis])
def test_the_slope_of_many_measurements_along_the_basis_is_found(basis):
    """Twenty configurations that differ in level only; a ridge of 0.02 costs under 2 % against a spread above 1."""
    generator = np.random.default_rng(0)
    configurations = generator.random((20, COLUMNS))
    rows = np.array([[*configuration, s] for configuration in configurations for s in (0.02, 0.1, 0.3, 0.6)])
    targets = np.repeat(generator.normal(size=20), 4) + 0.7 * basis(rows[:, -1])
    [posterior] = BaggedTrees(basis=basis).fit(rows, targets, None, generator).members
    np.testing.assert_allclose(posterior.lines[:, 1], 0.7, rtol=0.02)


def test_members_that_did_not_draw_a_new_measurement_stay_as_they_were():
    """Poisson draws leave a measurement out of e⁻¹ of the members; one seed, and those members must not move.

    Within 4.5 standard errors of a binomial share over 1000 members.
    """
    rows, targets = _measurements()
    queries = np.random.default_rng(3).random((60, COLUMNS + 1))
    values = []
    for count in (29, 30):
        surrogate = BaggedTrees(count=1000)
        [member] = surrogate.fit(rows[:count], targets[:count], None, np.random.default_rng(7)).members
        values.append(
            member.forest.predict(queries) + member.lines[:, :1] + member.lines[:, 1:] * log_basis(queries[:, -1])
        )
    unmoved = np.all(values[0] == values[1], axis=1).mean()
    share = np.exp(-1.0)
    assert unmoved == pytest.approx(share, abs=4.5 * np.sqrt(share * (1.0 - share) / 1000))


def test_noise_is_small_beside_what_the_trees_leave_unexplained():
    posterior, _ = _fitted()
    assert 0.0 < posterior.noise_variance < posterior.unexplained


def test_of_pure_noise_the_trees_explain_nothing():
    """Unit noise on 300 rows: an ensemble errs by its variance, 1, a single tree that repeats another's noise by 2."""
    generator = np.random.default_rng(0)
    rows = np.column_stack([generator.random((300, COLUMNS)), np.full(300, 0.5)])
    [posterior] = BaggedTrees().fit(rows, generator.normal(size=300), None, generator).members
    assert 0.8 < posterior.unexplained < 2.5


def test_of_a_step_the_trees_explain_almost_all():
    generator = np.random.default_rng(0)
    rows = np.column_stack([generator.random((300, COLUMNS)), np.full(300, 0.5)])
    targets = np.where(rows[:, 0] > 0.5, 1.0, -1.0)
    [posterior] = BaggedTrees().fit(rows, targets, None, generator).members
    assert posterior.unexplained < 0.15 * targets.var()


def test_with_one_measurement_the_unexplained_variance_is_the_prior_guess():
    row = np.array([[0.5, 0.5, 0.5, 0.1]])
    [posterior] = BaggedTrees().fit(row, np.array([3.0]), 1.5, np.random.default_rng(0)).members
    assert posterior.unexplained == pytest.approx(1.5**2)


# --- plain trees, as the papers have them


def _weka(rows, targets, trees=1, seed=0):
    rows = np.asarray(rows, dtype=float)
    return grow(rows, np.tile(targets, (trees, 1)), np.ones((trees, len(rows))), _keys(seed, trees), SomeColumns())


def test_a_random_tree_splits_where_the_squared_error_falls_most_halfway_between_two_values():
    """Of the cuts of 1, 2, 5, 6 with targets 0, 1, 8, 9 the second leaves 1, the others far more; halfway is 3.5."""
    forest = _weka([[1.0], [2.0], [5.0], [6.0]], [0.0, 1.0, 8.0, 9.0])
    assert (forest.feature[0], forest.threshold[0]) == (0, 3.5)
    assert sorted(forest.threshold[forest.feature >= 0].tolist()) == [1.5, 3.5, 5.5]


def test_weights_are_as_good_as_repetitions_to_a_random_tree():
    """Three of the first and two of the last: the mean of the leaf that cannot be split is (3 × 1 + 2 × 6) / 5."""
    rows = np.array([[1.0, 0.5], [1.0, 0.5]])
    forest = grow(rows, np.array([[1.0, 6.0]]), np.array([[3.0, 2.0]]), _keys(0, 1), SomeColumns())
    np.testing.assert_allclose(forest.predict(rows[:1]), 3.0)


def test_a_node_looks_at_one_and_the_logarithm_of_the_columns_drawn_at_random():
    """Of 4 columns 3 are drawn (Weka: ⌊log₂ 4⌋ + 1): the only good one is at the root in 3 of 4 trees.

    800 trees: the share has a deviation of √(3/16 / 800) = 0.0153.
    """
    generator = np.random.default_rng(5)
    rows = generator.random((40, 4))
    forest = _weka(rows, np.where(rows[:, 2] > 0.5, 9.0, 0.0) + 0.01 * generator.random(40), trees=800)
    assert (forest.feature[:800] == 2).mean() == pytest.approx(0.75, abs=4 * 0.0153)


def test_columns_that_part_nothing_are_drawn_over():
    """Of 8 columns only the last differs, and 4 are drawn: it is found by every tree all the same."""
    rows = np.zeros((2, 8))
    rows[1, -1] = 1.0
    forest = _weka(rows, [0.0, 1.0], trees=50)
    np.testing.assert_array_equal(forest.feature[:50], 7)
    np.testing.assert_array_equal(forest.predict(rows), np.tile([0.0, 1.0], (50, 1)))


@given(seeds)
def test_a_random_tree_that_has_seen_everything_reproduces_it(seed):
    rows = _rows(seed, 15)
    targets = np.random.default_rng(seed).normal(size=len(rows))
    np.testing.assert_array_equal(_weka(rows, targets, trees=3, seed=seed).predict(rows), np.tile(targets, (3, 1)))


@pytest.mark.parametrize("rule", [OneThreshold(), SomeColumns()], ids=["extra", "random"])
def test_plain_trees_are_bagged_their_spread_is_that_of_means_of_samples_drawn_with_replacement(rule):
    """Two measurements, 0 and 1, that no column tells apart: a tree says the mean of its sample of two.

    That is 0, ½ or 1 with chances ¼, ½, ¼: mean ½, variance ⅛. Without bagging all trees say ½, and there is no spread.
    """
    rows = np.array([[0.3, 0.7, 1.0], [0.3, 0.7, 1.0]])
    said = PlainTrees(rule, 4000).fit(rows, np.array([0.0, 1.0]), None, np.random.default_rng(2)).predict(rows[:1])
    assert said.mean[0] == pytest.approx(0.5, abs=4 * np.sqrt(1 / 8 / 4000))
    assert said.variance[0] == pytest.approx(0.125, abs=0.01)


def test_our_trees_are_bagged_too_and_their_spread_has_that_of_the_samples():
    """With Poisson(1) draws k and l of 0 and 1 a member says l / (k + l), ½ where it drew none: variance about 0.136.

    Exactly Σ P(k) P(l) (l / (k + l) - ½)² = 0.13616; on top of it come what is the configuration's own and the floor.
    """
    from scipy.stats import poisson

    k, m = np.meshgrid(np.arange(40), np.arange(40))
    share = np.where(k + m > 0, m / np.maximum(k + m, 1), 0.5)
    exact = float((poisson.pmf(k, 1) * poisson.pmf(m, 1) * (share - 0.5) ** 2).sum())
    rows = np.array([[0.3, 0.7, 1.0], [0.3, 0.7, 1.0]])
    posterior = BaggedTrees(4000).fit(rows, np.array([0.0, 1.0]), None, np.random.default_rng(2)).members[0]
    assert posterior._members(rows[:1]).var() == pytest.approx(exact, abs=0.01)


def test_plain_trees_are_a_gaussian_with_the_mean_and_variance_of_their_members():
    rows, targets = _rows(3, 20), np.random.default_rng(3).normal(size=20)
    (member,) = PlainTrees(SomeColumns(), 7).fit(rows, targets, None, np.random.default_rng(0)).members
    queries = _rows(4, 9)
    values = member.forest.predict(queries)
    assert values.shape == (7, len(queries))
    np.testing.assert_allclose(member.predict(queries).mean, values.mean(axis=0))
    np.testing.assert_allclose(member.predict(queries).variance, values.var(axis=0), atol=2 * member.least)
    np.testing.assert_allclose(
        member.covariance(queries, queries), np.cov(values, rowvar=False, bias=True), atol=2 * member.least
    )
