"""The parts below the surrogates: a memory of the last arrays, one conditioning and one mixture computed by hand."""

from dataclasses import dataclass

import numpy as np
import pytest

from trimtuner.models.forest import Forest
from trimtuner.models.gaussian_process import GaussianProcess, MostLikely, ProcessPosterior
from trimtuner.models.kernels import Matern52
from trimtuner.models.posterior import Conditioned, Memo, Mixture, Prediction
from trimtuner.models.trees import BaggedTrees


@dataclass(frozen=True)
class LineThroughZero:
    """A fake with known answers: f(x) = level + w·x with w ~ N(0, 1), x the first column, noise variance 1."""

    level: float
    noise_variance: float = 1.0

    def predict(self, rows):
        return Prediction(np.full(len(rows), self.level), rows[:, 0] ** 2)

    def covariance(self, rows, others):
        return np.outer(rows[:, 0], others[:, 0])


AT_ONE, AT_TWO = np.array([[1.0, 1.0]]), np.array([[2.0, 1.0]])


def test_a_slope_seen_once_at_one_is_half_believed_at_two():
    """w | y = 3 at x = 1 is N(3/2, 1/2): at x = 2 the mean is 3 and the variance 2."""
    after = Conditioned(LineThroughZero(0.0), AT_ONE, np.array([3.0]))
    np.testing.assert_allclose(after.predict(AT_TWO).mean, [3.0])
    np.testing.assert_allclose(after.predict(AT_TWO).variance, [2.0])
    np.testing.assert_allclose(after.covariance(AT_ONE, AT_TWO), [[1.0]])


def test_a_slope_seen_twice_at_one_keeps_a_third_of_its_variance():
    """w | y = 3, 3 at x = 1 is N(2, 1/3)."""
    after = Conditioned(Conditioned(LineThroughZero(0.0), AT_ONE, np.array([3.0])), AT_ONE, np.array([3.0]))
    np.testing.assert_allclose(after.predict(AT_ONE).mean, [2.0])
    np.testing.assert_allclose(after.predict(AT_ONE).variance, [1.0 / 3.0])


def test_a_mixture_adds_what_its_members_disagree_about():
    """Means 0 and 4 believed 1 to 3: mean 3, and 1/4·9 + 3/4·1 = 3 on top of the members' variance."""
    mixture = Mixture(np.array([0.25, 0.75]), [LineThroughZero(0.0), LineThroughZero(4.0)])
    mean, variance = mixture.predict(AT_TWO)
    np.testing.assert_allclose(mean, [3.0])
    np.testing.assert_allclose(variance, [4.0 + 3.0])
    np.testing.assert_allclose(mixture.covariance(AT_ONE, AT_TWO), [[2.0 + 3.0]])


def test_the_noise_of_a_mixture_is_the_mean_of_its_members():
    members = [LineThroughZero(0.0, noise_variance=1.0), LineThroughZero(0.0, noise_variance=5.0)]
    assert Mixture(np.array([0.25, 0.75]), members).noise_variance == 4.0


def test_the_memo_computes_once_for_the_same_array_and_again_for_an_equal_one():
    memo, seen = Memo(), []

    def double(rows):
        seen.append(rows)
        return 2.0 * rows

    rows = np.ones((2, 2))
    first, second = memo.get(rows, double), memo.get(rows, double)
    assert first is second
    memo.get(rows.copy(), double)
    assert len(seen) == 2


def test_the_memo_forgets_the_oldest_array():
    memo, computed = Memo(size=2), []
    arrays = [np.full((1, 1), float(number)) for number in range(3)]
    for rows in [*arrays, arrays[2], arrays[1], arrays[0]]:
        memo.get(rows, lambda fresh: (computed.append(float(fresh[0, 0])), fresh)[1])
    assert computed == [0.0, 1.0, 2.0, 0.0]


@pytest.mark.parametrize(
    ("surrogate", "computing"),
    [
        (GaussianProcess((Matern52(),), MostLikely()), (ProcessPosterior, "_whiten")),
        (BaggedTrees(4), (Forest, "predict")),
    ],
    ids=["process", "trees"],
)
def test_a_model_works_out_the_same_rows_once_and_an_equal_copy_anew_to_the_same_end(surrogate, computing, monkeypatch):
    rows = np.column_stack([np.linspace(0.0, 1.0, 5), np.ones(5)])
    model = surrogate.fit(rows, rows[:, 0], 1.0, np.random.default_rng(0))
    home, name = computing
    compute, asked = getattr(home, name), []
    monkeypatch.setattr(home, name, lambda self, fresh: asked.append(fresh) or compute(self, fresh))
    there = rows + np.array([0.1, 0.0])
    first = model.predict(there)
    model.covariance(there, there)
    model.predict(there)
    assert len(asked) == 1
    np.testing.assert_array_equal(model.predict(there.copy()), first)
    assert len(asked) == 2
