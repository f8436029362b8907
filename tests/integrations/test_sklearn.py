"""TrimSearchCV, against scikit-learn itself: a search as any other of its own."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import trimtuner as tt
from trimtuner.integrations.sklearn import TrimSearchCV

INPUTS, TARGETS = load_iris(return_X_y=True)
BRIEF = {"trials": 2, "method": "random", "fractions": [1], "random_state": 0, "cv": 2}
USUAL = {"trials": 12, "method": "random", "random_state": 0, "cv": 3}  # without a model, it searches in no time


class Known(ClassifierMixin, BaseEstimator):
    """Scores what its parameters say, and grows with the rows that it was given; fails where it is told to."""

    def __init__(self, worth: float = 0.0, power: int | None = None, trees: int = 90, breaks: bool = False) -> None:
        self.worth, self.power, self.trees, self.breaks = worth, power, trees, breaks

    def fit(self, inputs: np.ndarray, targets: np.ndarray) -> Known:
        if self.breaks:
            raise RuntimeError("told to")
        self.classes_, self.rows_ = np.unique(targets), len(inputs)
        return self

    def predict(self, inputs: np.ndarray) -> np.ndarray:
        return np.full(len(inputs), self.classes_[0])

    def score(self, inputs: np.ndarray, targets: np.ndarray) -> float:  # noqa: ARG002
        return self.worth + (0.5 if self.power is None else 0.0) + 0.001 * self.trees + 0.0001 * self.rows_


def search(estimator: object = None, space: object = None, **settings: object) -> TrimSearchCV:
    offered = {"worth": [0.0, 0.1, 0.2], "power": [None, 1]} if space is None else space
    return TrimSearchCV(estimator or Known(), offered, **{**USUAL, **settings})


def test_the_best_is_found_fitted_on_all_rows_and_delegated_to():
    found = search().fit(INPUTS, TARGETS)
    assert found.best_params_ == {"worth": 0.2, "power": None}
    assert found.best_score_ == pytest.approx(0.2 + 0.5 + 0.09 + 0.01)  # 100 rows in each of three splits of 150
    assert found.best_estimator_.rows_ == 150
    assert found.score(INPUTS, TARGETS) == pytest.approx(0.2 + 0.5 + 0.09 + 0.015)
    assert list(found.predict(INPUTS[:2])) == [0, 0]
    assert found.cv_results_["params"][found.best_index_] == found.best_params_
    assert found.cv_results_["fraction"][found.best_index_] == 1


def test_most_candidates_are_tried_on_few_rows_and_scored_on_all_that_are_held_out():
    offered = {"worth": tt.Float(0.0, 0.4)}
    found = search(fractions=[0.2, 1], space=offered, method="trimtuner", trials=8).fit(INPUTS, TARGETS)
    results = found.cv_results_
    worth = np.array([params["worth"] for params in results["params"]])
    rows = (results["mean_test_score"] - 0.59 - worth) / 0.0001
    assert list(rows) == pytest.approx(list(100 * results["fraction"]))
    assert (results["fraction"] < 1).sum() > (results["fraction"] == 1).sum()


def test_results_have_the_columns_of_scikit_learn():
    found = search(return_train_score=True).fit(INPUTS, TARGETS)
    count = len(found.cv_results_["params"])
    for column in ("mean_fit_time", "split2_test_score", "std_test_score", "rank_test_score", "mean_train_score"):
        assert len(found.cv_results_[column]) == count
    assert found.n_splits_ == 3


def test_a_parameter_is_a_resource_too():
    found = search(resource="trees", max_resources=90, method="hyperband", fractions=[0.1, 1]).fit(INPUTS, TARGETS)
    assert set(found.cv_results_["param_trees"]) == {9, 90}
    assert found.best_params_ == {"worth": 0.2, "power": None, "trees": 90}
    assert found.best_estimator_.trees == 90


def test_a_limit_on_another_scorer_holds():
    scoring = {"main": lambda model, *_: model.worth, "safe": lambda model, *_: 1.0 - model.worth}
    found = search(
        space={"worth": [0.0, 0.1, 0.2, 0.3]}, scoring=scoring, refit="main", constraints=["safe >= 0.85"]
    ).fit(INPUTS, TARGETS)
    assert found.best_params_ == {"worth": 0.1}


def test_candidates_that_fail_are_no_end_of_the_search():
    with pytest.warns(FitFailedWarning, match="told to"):
        found = search(space={"worth": [0.0, 0.1], "breaks": [False, True]}, trials=4, fractions=[1]).fit(
            INPUTS, TARGETS
        )
    assert found.best_params_ == {"worth": 0.1, "breaks": False}
    assert len(found.study_.history.failures) == 2


def test_the_first_error_is_passed_on_where_that_is_wanted():
    with pytest.raises(RuntimeError, match="told to"):
        search(Known(breaks=True), error_score="raise").fit(INPUTS, TARGETS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_an_estimator_that_never_fits_says_why():
    with pytest.raises(ValueError, match="told to"):
        search(Known(breaks=True)).fit(INPUTS, TARGETS)


def test_the_same_seed_searches_the_same():
    searches = [search(space={"worth": tt.Float(0.0, 1.0)}, trials=3).fit(INPUTS, TARGETS) for _ in range(2)]
    assert searches[0].cv_results_["params"] == searches[1].cv_results_["params"]


def test_without_refit_there_are_parameters_and_no_estimator():
    found = search(refit=False).fit(INPUTS, TARGETS)
    assert found.best_params_["worth"] == 0.2
    with pytest.raises((NotFittedError, AttributeError)):
        found.predict(INPUTS)


def test_pipelines_copies_pickles_and_nested_cross_validation():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    one = TrimSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, **BRIEF)
    assert clone(one).get_params()["space"].keys() == {"logisticregression__C"}
    assert cross_val_score(one, INPUTS, TARGETS, cv=2).min() > 0.8
    fitted = one.fit(INPUTS, TARGETS)
    assert list(pickle.loads(pickle.dumps(fitted)).predict(INPUTS)) == list(fitted.predict(INPUTS))  # noqa: S301


def test_a_space_of_trimtuner_with_a_condition_is_taken_as_it_is():
    offered = tt.Space(
        {"power": tt.Choice([None, 1]), "worth": tt.Choice([0.1, 0.2], when="power == 1")}, fractions=[1]
    )
    found = search(space=offered, trials=3).fit(INPUTS, TARGETS)
    assert found.best_params_ == {"power": None}  # 0.5, and without a worth


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"space": {"worth": 0.1}}, "write a list of values"),
        ({"space": {"worth": [Known()]}}, r"space\['worth'\]: a value is a number"),
        ({"space": [1]}, "must map names of parameters"),
        ({"resource": "trees"}, "needs max_resources"),
        ({"resource": "worth", "max_resources": 3}, "leave it out of the space"),
        ({"scoring": ["accuracy", "f1_macro"], "refit": False}, "several scorers"),
        ({"constraints": ["latency <= 3"]}, "latency"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, complaint):
    with pytest.raises(tt.InputError, match=complaint):
        search(**settings).fit(INPUTS, TARGETS)


# What scikit-learn asks of every estimator. The cheap ones run here, all of them in the soak; except that a column of
# targets warns: fits are made where warnings of the estimator are not seen; scikit-learn leaves its searches out, too.
LEFT_OUT = {"check_supervised_y_2d"}
QUICK = {
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_fit_check_is_fitted",
    "check_n_features_in",
    "check_estimators_pickle",
}


CHECKED = {"logistic": (LogisticRegression(), {"C": [0.1, 1.0]}), "ridge": (Ridge(), {"alpha": [0.1, 1.0]})}


def checks_of(kind: str) -> dict[str, list[Callable[[], object]]]:
    """By their names, some of which stand for several."""
    from sklearn.utils.estimator_checks import estimator_checks_generator  # slow: where tests run, not to collect them

    found = defaultdict(list)
    for one, check in estimator_checks_generator(TrimSearchCV(*CHECKED[kind], **BRIEF), legacy=True):
        found[getattr(check, "func", check).__name__].append(partial(check, one))
    return found


@pytest.mark.xdist_group("checks of scikit-learn")  # one slow import for all of them
@pytest.mark.filterwarnings("ignore")  # of fits that are meant to fail
@pytest.mark.parametrize("name", sorted(QUICK))
def test_scikit_learns_own_checks_pass(name):
    checks = checks_of("logistic")[name]
    assert checks
    for check in checks:
        check()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", CHECKED)
def test_all_of_scikit_learns_own_checks_pass(kind, subtests):
    for name, checks in checks_of(kind).items():
        for number, check in enumerate(checks if name not in LEFT_OUT else []):
            with subtests.test(name, number=number):
                check()


@pytest.mark.slow
def test_a_search_finds_what_a_grid_would():
    inputs, targets = make_classification(600, 20, n_informative=5, random_state=0)
    offered = {"max_depth": [1, 2, 3, 5, 8, None], "min_samples_leaf": [1, 5, 25, 100]}
    found = search(DecisionTreeClassifier(random_state=0), offered, trials=30, method="trimtuner").fit(inputs, targets)
    grid = {
        (depth, leaf): cross_val_score(
            DecisionTreeClassifier(max_depth=depth, min_samples_leaf=leaf, random_state=0), inputs, targets, cv=3
        ).mean()
        for depth in offered["max_depth"]
        for leaf in offered["min_samples_leaf"]
    }
    assert found.best_score_ >= sorted(grid.values())[-5]
    assert found.best_score_ == pytest.approx(grid[tuple(found.best_params_.values())])
