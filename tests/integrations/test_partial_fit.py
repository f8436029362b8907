"""Models of scikit-learn that learn in parts: which rows they see, in which order, and what is reported when."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from integrations.reported import reports_in
from trimtuner.errors import InputError
from trimtuner.integrations.partial_fit import fit_with_snapshots


class Notebook:
    """Learns nothing, and writes down what it was shown."""

    def __init__(self):
        self.seen, self.batches = [], []

    def partial_fit(self, inputs, targets):
        self.seen += inputs.ravel().tolist()
        self.batches.append(len(targets))


def rows(count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(count).reshape(-1, 1), np.arange(count)


def seen_with(fraction: float, **options: object) -> list[int]:
    model = Notebook()
    fit_with_snapshots(model, *rows(100), lambda _: {"accuracy": 0.5}, fraction=fraction, **options)
    return model.seen


def test_a_larger_share_begins_with_the_rows_of_a_smaller_one():
    quarter, half = seen_with(0.25), seen_with(0.5, batch_size=7)
    assert len(quarter) == 25
    assert half[:25] == quarter
    assert len(set(half)) == 50
    assert seen_with(0.25, seed=1) != quarter


def test_snapshots_do_not_change_what_is_learnt():
    assert seen_with(0.5, snapshots=[0.1, 0.25]) == seen_with(0.5)


def test_each_share_is_reported_after_the_batch_that_reaches_it_and_the_fraction_at_the_end(capfd):
    model = Notebook()
    last = fit_with_snapshots(
        model,
        *rows(100),
        lambda one: {"rows": len(one.seen)},
        fraction=0.5,
        snapshots=[0.25, 0.1, 0.5],
        batch_size=20,
    )
    reports = reports_in(capfd.readouterr().out)
    assert reports == [{"rows": 20, "fraction": 0.1}, {"rows": 40, "fraction": 0.25}, {"rows": 50, "fraction": 0.5}]
    assert last == {"rows": 50}
    assert model.batches == [20, 20, 10]


def framed(inputs, labels):
    import pandas as pd  # where it is used: it is slow to import, and would be by whoever collects these tests

    return pd.DataFrame(inputs), pd.Series(labels, index=np.arange(len(labels))[::-1])


KINDS = {
    "array": lambda inputs, labels: (inputs, labels),
    "sparse": lambda inputs, labels: (sparse.csr_array(inputs), labels),
    "frame": framed,
}


@pytest.mark.parametrize(
    "make", [SGDClassifier, partial(MLPClassifier, (32,), learning_rate_init=0.05)], ids=["sgd", "mlp"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_classifiers_learn_from_arrays_sparse_matrices_and_data_frames(make, kind, capfd):
    model = make(random_state=0)
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 200)  # in order, so that unshuffled the first batch would lack two of them
    inputs = np.eye(3)[labels] + generator.normal(0, 0.1, (600, 3))
    given, targets = KINDS[kind](inputs, labels)
    fit_with_snapshots(
        model,
        given,
        targets,
        lambda one: {"accuracy": one.score(given, labels)},
        snapshots=[0.25],
        classes=[0, 1, 2],
    )
    shares = {report["fraction"]: report["accuracy"] for report in reports_in(capfd.readouterr().out)}
    assert shares.keys() == {0.25, 1.0}
    assert shares[1.0] > 0.99  # far apart: a model that was shown wrong pairs is right for a third


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"fraction": 0.0}, "single row"),
        ({"fraction": 1.5}, "outside"),
        ({"fraction": 0.001}, "fraction 0.001 of 100 rows is not a single row"),
        ({"snapshots": [0.0]}, "outside"),
        ({"batch_size": 0}, "batch_size=0"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_learnt(options, why):
    model = Notebook()
    with pytest.raises(InputError, match=why):
        fit_with_snapshots(model, *rows(100), lambda _: {"accuracy": 1.0}, **options)
    assert model.seen == []


def test_rows_that_do_not_belong_together_are_refused():
    inputs, targets = rows(10)
    with pytest.raises(InputError, match="10 rows of inputs, but 9 of targets"):
        fit_with_snapshots(Notebook(), inputs, targets[:9], lambda _: {"accuracy": 1.0})
    with pytest.raises(InputError, match="targets must be an array, a sparse matrix or a data frame, not list"):
        fit_with_snapshots(Notebook(), inputs, list(range(10)), lambda _: {"accuracy": 1.0})
