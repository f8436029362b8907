"""Kernels: covariance functions by law, closed forms by hand, gradients by finite differences."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trimtuner.models.kernels import (
    FractionKernel,
    FractionWalk,
    Matern52,
    OwnDeparture,
    Prior,
    Product,
    Sum,
    linear_basis,
    log_basis,
    quadratic_basis,
)

BASES = {"log": log_basis, "quadratic": quadratic_basis, "linear": linear_basis}
COLUMNS = 3


def _trend_and_departure(basis):
    return Sum(FractionKernel(basis), Product(Matern52(), FractionKernel(basis)))


KERNELS = [
    pytest.param(Matern52(), id="Matern52"),
    *(pytest.param(FractionKernel(basis), id=f"FractionKernel-{name}") for name, basis in BASES.items()),
    pytest.param(FractionKernel(log_basis, level=0.3, slope=2.0), id="FractionKernel-with-other-prior"),
    pytest.param(FractionWalk(), id="FractionWalk"),
    pytest.param(OwnDeparture(), id="OwnDeparture"),
    pytest.param(
        Sum(Product(Matern52(), Sum(FractionKernel(log_basis), FractionWalk())), OwnDeparture()), id="learning-trust"
    ),
    pytest.param(Product(Matern52(), FractionKernel(log_basis)), id="Product"),
    pytest.param(Product(Matern52(), Matern52()), id="Product-of-equals"),
    pytest.param(Sum(Matern52(), FractionKernel(quadratic_basis)), id="Sum"),
    pytest.param(_trend_and_departure(log_basis), id="Sum-with-Product"),
    pytest.param(
        Product(Sum(Matern52(), FractionKernel(log_basis)), FractionKernel(linear_basis)), id="Product-with-Sum"
    ),
]


@st.composite
def rows_of_points(draw, least=1, most=8):
    """Configurations in the unit cube, then a fraction; rows may repeat."""
    count = draw(st.integers(least, most))
    columns = draw(arrays(float, (count, COLUMNS), elements=st.floats(0.0, 1.0)))
    fractions = draw(arrays(float, (count, 1), elements=st.floats(0.01, 1.0)))
    return np.hstack([columns, fractions])


@st.composite
def theta_of(draw, kernel):
    """Hyper-parameters within two prior deviations of the prior mean."""
    prior = kernel.prior(COLUMNS)
    standard = draw(arrays(float, prior.mean.shape, elements=st.floats(-2.0, 2.0)))
    return prior.mean + prior.deviation * standard


@pytest.mark.parametrize("kernel", KERNELS)
@given(data=st.data())
def test_the_matrix_is_symmetric_and_positive_semi_definite(kernel, data):
    theta, rows = data.draw(theta_of(kernel)), data.draw(rows_of_points())
    matrix = kernel.matrix(theta, rows, rows)
    size = np.abs(matrix).max()
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12 * size)
    # Rows may repeat, so the smallest eigenvalue may be zero, and a rounding error off it.
    assert np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min() >= -1e-9 * size


@pytest.mark.parametrize("kernel", KERNELS)
@given(data=st.data())
def test_swapping_the_arguments_transposes_the_matrix(kernel, data):
    theta, rows, others = (data.draw(one) for one in (theta_of(kernel), rows_of_points(), rows_of_points()))
    matrix = kernel.matrix(theta, rows, others)
    assert matrix.shape == (len(rows), len(others))
    np.testing.assert_allclose(matrix, kernel.matrix(theta, others, rows).T, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@given(data=st.data())
def test_the_diagonal_is_the_diagonal_of_the_matrix(kernel, data):
    theta, rows = data.draw(theta_of(kernel)), data.draw(rows_of_points())
    expected = np.diagonal(kernel.matrix(theta, rows, rows))
    np.testing.assert_allclose(kernel.diagonal(theta, rows), expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@given(data=st.data())
def test_pull_back_equals_finite_differences(kernel, data):
    theta, rows = data.draw(theta_of(kernel)), data.draw(rows_of_points(least=2, most=5))
    half = data.draw(arrays(float, (len(rows), len(rows)), elements=st.floats(-1.0, 1.0)))
    weights = half + half.T

    def weighed_sum(at):
        return float((weights * kernel.matrix(at, rows, rows)).sum())

    step = 1e-5
    expected = [
        (weighed_sum(theta + step * unit) - weighed_sum(theta - step * unit)) / (2.0 * step)
        for unit in np.eye(len(theta))
    ]
    # Central differences err by step², and by the rounding of the sum over the step.
    size = float((np.abs(weights) * kernel.matrix(theta, rows, rows).max()).sum())
    np.testing.assert_allclose(kernel.pull_back(theta, rows, weights), expected, atol=1e-6 * (1.0 + size))


@pytest.mark.parametrize("kernel", KERNELS)
@given(data=st.data())
def test_an_equal_copy_of_the_rows_gives_the_matrix_of_the_rows_with_themselves(kernel, data):
    theta, rows = data.draw(theta_of(kernel)), data.draw(rows_of_points(least=2, most=5))
    np.testing.assert_array_equal(kernel.matrix(theta, rows, rows), kernel.matrix(theta, rows, rows.copy()))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_prior_has_a_mean_and_a_positive_deviation_for_every_hyper_parameter(kernel):
    prior = kernel.prior(COLUMNS)
    assert prior.mean.shape == prior.deviation.shape
    assert (prior.deviation > 0).all()
    rows = np.full((2, COLUMNS + 1), 0.5)
    assert kernel.pull_back(prior.mean, rows, np.eye(2)).shape == prior.mean.shape


@pytest.mark.parametrize("basis", BASES.values(), ids=BASES)
def test_a_basis_is_zero_at_full_data_and_monotone_below(basis):
    fractions = np.linspace(0.01, 1.0, 50)
    values = basis(fractions)
    assert values[-1] == 0.0
    steps = np.diff(values)
    assert (steps > 0).all() or (steps < 0).all()


def test_the_bases_are_the_formulas_of_their_names():
    fractions = np.array([0.01, 0.1, 0.5])
    np.testing.assert_allclose(log_basis(fractions), [-1.0, -0.5, -0.5 * math.log10(2.0)])
    np.testing.assert_allclose(quadratic_basis(fractions), [0.9801, 0.81, 0.25])
    np.testing.assert_allclose(linear_basis(fractions), [0.99, 0.9, 0.5])


def test_matern_at_a_distance_of_one_over_root_five_lengths_is_seven_thirds_over_e():
    """There √5 r = 1 and 5r²/3 = 1/3, so k = (1 + 1 + 1/3) / e."""
    length = 0.7
    rows = np.array([[0.1, 1.0], [0.1 + length / math.sqrt(5.0), 0.2]])
    matrix = Matern52().matrix(np.array([math.log(length)]), rows, rows)
    np.testing.assert_allclose(matrix, [[1.0, 7.0 / (3.0 * math.e)], [7.0 / (3.0 * math.e), 1.0]], rtol=1e-12)


def test_matern_adds_squared_distances_each_in_its_own_length():
    """Three lengths apart in one column and four in another is five apart: r = 5, 5r²/3 = 125/3."""
    lengths = np.array([0.1, 0.2])
    rows = np.array([[0.0, 0.0, 1.0], [0.3, 0.8, 1.0]])
    expected = (1.0 + 5.0 * math.sqrt(5.0) + 125.0 / 3.0) * math.exp(-5.0 * math.sqrt(5.0))
    assert Matern52().matrix(np.log(lengths), rows, rows)[0, 1] == pytest.approx(expected, rel=1e-10)


@given(data=st.data())
def test_matern_ignores_the_fraction(data):
    theta, rows = data.draw(theta_of(Matern52())), data.draw(rows_of_points())
    at_full_data = rows.copy()
    at_full_data[:, -1] = 1.0
    np.testing.assert_array_equal(
        Matern52().matrix(theta, rows, rows), Matern52().matrix(theta, at_full_data, at_full_data)
    )


def test_a_shorter_length_lowers_the_covariance():
    rows = np.array([[0.2, 1.0], [0.6, 1.0]])
    covariances = [Matern52().matrix(np.array([math.log(length)]), rows, rows)[0, 1] for length in (0.1, 0.3, 1.0, 5.0)]
    assert (np.diff(covariances) > 0).all()


@pytest.mark.parametrize("basis", BASES.values(), ids=BASES)
def test_the_fraction_kernel_at_full_data_is_the_square_of_its_level(basis):
    theta = np.array([math.log(0.8), -0.4, math.log(1.7)])
    assert FractionKernel(basis).diagonal(theta, np.array([[0.3, 1.0]]))[0] == pytest.approx(0.64)


def test_the_fraction_kernel_is_the_quadratic_form_of_its_features():
    """With L = [[2, 0], [-1, 3]], Θ = LLᵀ = [[4, -2], [-2, 10]]; φ = 1 - s is 1/2 and 1/4."""
    theta = np.array([math.log(2.0), -1.0, math.log(3.0)])
    rows = np.array([[0.0, 0.5], [0.0, 0.75]])
    cross = 4.0 - 2.0 * (0.5 + 0.25) + 10.0 * 0.5 * 0.25
    expected = [[4.0 - 2.0 + 10.0 / 4.0, cross], [cross, 4.0 - 1.0 + 10.0 / 16.0]]
    np.testing.assert_allclose(FractionKernel(linear_basis).matrix(theta, rows, rows), expected)


@given(data=st.data())
def test_product_and_sum_multiply_and_add_matrices(data):
    left, right = Matern52(), FractionKernel(log_basis)
    one, two = data.draw(theta_of(left)), data.draw(theta_of(right))
    rows, others = data.draw(rows_of_points()), data.draw(rows_of_points())
    both = np.concatenate([one, two])
    first, second = left.matrix(one, rows, others), right.matrix(two, rows, others)
    np.testing.assert_allclose(Product(left, right).matrix(both, rows, others), first * second)
    np.testing.assert_allclose(Sum(left, right).matrix(both, rows, others), first + second)


def test_priors_are_joined_in_order():
    joined = Prior(np.array([1.0]), np.array([2.0])) + Prior(np.array([3.0, 4.0]), np.array([5.0, 6.0]))
    np.testing.assert_array_equal(joined.mean, [1.0, 3.0, 4.0])
    np.testing.assert_array_equal(joined.deviation, [2.0, 5.0, 6.0])


# --- how far sub-samples are trusted


def rows_at(*fractions, column=0.5):
    return np.array([[column] * COLUMNS + [fraction] for fraction in fractions])


def test_a_walk_leaves_full_data_alone_and_has_its_size_at_a_hundredth():
    """Brownian motion from s = 1: variance size² u with u = -log₁₀(s) / 2."""
    theta = np.array([math.log(3.0)])
    np.testing.assert_allclose(FractionWalk().diagonal(theta, rows_at(1.0, 0.1, 0.01)), [0.0, 4.5, 9.0], atol=1e-12)


def test_steps_of_a_walk_are_independent():
    """Between 0.1 and 1 it moves without regard to where it goes from 0.01 to 0.1."""
    matrix = FractionWalk().matrix(np.zeros(1), rows_at(0.01, 0.1), rows_at(0.01, 0.1))
    near_step, far_step = np.array([0.0, 1.0]), np.array([1.0, -1.0])
    assert near_step @ matrix @ far_step == pytest.approx(0.0, abs=1e-12)


def test_the_larger_the_walk_the_less_a_small_fraction_says_of_full_data():
    def correlation(size):
        kernel = Sum(FractionKernel(log_basis), FractionWalk())
        theta = np.array([0.0, 0.0, math.log(1e-6), math.log(size)])  # level 1, no slope
        matrix = kernel.matrix(theta, rows_at(0.01, 1.0), rows_at(0.01, 1.0))
        return matrix[0, 1] / math.sqrt(matrix[0, 0] * matrix[1, 1])

    np.testing.assert_allclose([correlation(size) for size in (1.0, 3.0)], [1 / math.sqrt(2), 1 / math.sqrt(10)])


def test_an_own_departure_is_shared_by_all_fractions_of_a_configuration_and_by_no_other_configuration():
    """size² + walk² u between a hundredth (u = 1) and itself; size² with full data."""
    kernel, theta = OwnDeparture(), np.log([0.5, 2.0])
    np.testing.assert_allclose(kernel.matrix(theta, rows_at(0.01), rows_at(0.01, 1.0)), [[4.25, 0.25]])
    np.testing.assert_allclose(kernel.matrix(theta, rows_at(1.0), rows_at(1.0, column=0.9)), 0.0, atol=1e-9)


def test_a_jump_of_one_configuration_says_the_less_of_the_others_the_more_curves_may_walk_on_their_own():
    rows = np.vstack([rows_at(0.01, 0.1, column=column) for column in (0.0, 0.3, 0.5, 0.8)])
    jump = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 2.3, 0.0, 0.0])  # the third, at a tenth of the data
    kernel = Sum(Product(Matern52(), FractionKernel(log_basis)), OwnDeparture())

    def moved(walk):
        """What the jump adds to the forecast for a neighbour on all of the data."""
        theta = np.append(kernel.prior(COLUMNS).mean[:-1], math.log(walk))
        covariance = kernel.matrix(theta, rows, rows) + 0.0025 * np.eye(len(rows))
        cross = kernel.matrix(theta, rows_at(1.0, column=0.6), rows)
        return abs(float((cross @ np.linalg.solve(covariance, jump))[0]))

    sizes = [moved(walk) for walk in (0.01, 0.3, 1.0, 3.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 0.5 * sizes[0]
