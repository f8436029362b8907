"""Recipes: named, composed of parts, and different only in what they say."""

from dataclasses import fields

import pytest

from trimtuner.decisions.acquisition import ExpectedCost
from trimtuner.decisions.designs import AcrossFractions, CheapStart
from trimtuner.decisions.entropy import ChanceIncumbentFeasible, InformationAboutBest
from trimtuner.decisions.filters import HighestConstrainedAccuracy, KeepAll
from trimtuner.decisions.incumbents import BestMeasured, BestPredictedFeasible, MostExpected
from trimtuner.decisions.learning import Inheritance
from trimtuner.decisions.stopping import AfterTrials, NotWorthItsPrice
from trimtuner.errors import InputError
from trimtuner.models.trees import BaggedTrees
from trimtuner.problem.earlier import Earlier
from trimtuner.problem.history import Measurement
from trimtuner.problem.parameters import Choice
from trimtuner.problem.problem import Problem
from trimtuner.problem.space import Space
from trimtuner.study.study import Study
from trimtuner.tuning.recipe import Recipe, WhereTested
from trimtuner.tuning.recipes import (
    METHODS,
    TRIMTUNER,
    TRIMTUNER_DT,
    TRIMTUNER_GP,
    recipe_named,
    several_fractions,
)

REPLACEMENTS = {
    "surrogate": BaggedTrees(count=7),
    "design": CheapStart(11),
    "filter": KeepAll(),
    "acquisition": ExpectedCost(),
    "incumbent": BestPredictedFeasible(0.5),
    "takes_snapshots": True,
    "time_surrogate": BaggedTrees(count=9),
    "quality_growth": 0.7,
    "time_growth": 0.3,
    "tests": WhereTested.BELOW_FULL,
    "small": 0.2,
    "confidence": 0.5,
    "stop": AfterTrials(7),
    "needs": (several_fractions,),
    "earlier": (
        Inheritance(
            Earlier("before", (Measurement({"x": 1}, 1.0, {"accuracy": 0.5}),), (None,)), Space({"x": Choice([1, 2])})
        ),
    ),
    "least_on_full_data": TRIMTUNER_GP,
}


def differing_parts(one, other):
    return {part.name for part in fields(Recipe) if getattr(one, part.name) != getattr(other, part.name)}


@pytest.mark.parametrize("name", METHODS)
def test_a_name_finds_its_recipe(name):
    assert recipe_named(name) == METHODS[name].recipe({})


@pytest.mark.parametrize("part", REPLACEMENTS)
def test_but_changes_only_what_it_names(part):
    changed = TRIMTUNER_GP.but(**{part: REPLACEMENTS[part]})
    assert differing_parts(changed, TRIMTUNER_GP) == {part}
    assert getattr(changed, part) == REPLACEMENTS[part]


def test_every_part_has_a_replacement_above():
    assert set(REPLACEMENTS) == {part.name for part in fields(Recipe)}


def test_but_leaves_the_method_it_is_said_of_as_it_was():
    before = TRIMTUNER_GP.design
    TRIMTUNER_GP.but(design=CheapStart(11))
    assert TRIMTUNER_GP.design is before


def test_but_can_do_without_an_acquisition():
    assert TRIMTUNER_GP.but(acquisition=None).acquisition is None


def test_but_knows_no_part_of_another_name():
    with pytest.raises(TypeError, match="acquisitoin"):
        TRIMTUNER_GP.but(acquisitoin=ExpectedCost())


def test_but_can_say_no_to_snapshots():
    assert TRIMTUNER.takes_snapshots
    assert not TRIMTUNER.but(takes_snapshots=False).takes_snapshots


def test_but_without_a_change_is_the_same_method():
    assert TRIMTUNER.but() == TRIMTUNER


def test_the_variants_with_processes_and_with_trees_differ_in_the_surrogate_only():
    assert differing_parts(TRIMTUNER_GP, TRIMTUNER_DT) == {"surrogate"}
    assert isinstance(TRIMTUNER_DT.surrogate, BaggedTrees)


def test_the_variants_of_the_paper_are_what_the_paper_says():
    """One configuration across fractions; the 10 % of highest CEA; Eq. 5; P ≥ 0.9."""
    assert TRIMTUNER_GP.design == AcrossFractions()
    assert TRIMTUNER_GP.filter == HighestConstrainedAccuracy(0.10)
    assert TRIMTUNER_GP.acquisition == InformationAboutBest(roots=1) * ChanceIncumbentFeasible(0.9) / ExpectedCost()
    assert TRIMTUNER_GP.incumbent == BestPredictedFeasible(0.90)


def test_the_default_recommends_what_it_expects_most_of():
    assert TRIMTUNER.incumbent == MostExpected()


# --- which fractions

THREE = (0.1, 0.5, 1.0)


def problem_of(goal, fractions=THREE):
    space = Space.from_configs([{"x": 0}, {"x": 1}], fractions=fractions, snapshots=True)
    return Problem.of(space, *((goal, None) if goal == "accuracy" else (None, goal)), ["time <= 1h"], None)


@pytest.mark.parametrize(
    ("tests", "goal", "seen", "targets", "tested"),
    [
        (WhereTested.ANYWHERE, "accuracy", THREE, (1.0,), THREE),
        (WhereTested.ANYWHERE, "time", THREE, THREE, THREE),
        (WhereTested.BELOW_FULL, "accuracy", THREE, (1.0,), (0.1, 0.5)),
        (WhereTested.BELOW_FULL, "time", THREE, THREE, (0.1, 0.5)),
        (WhereTested.WHERE_MEANT, "accuracy", (1.0,), (1.0,), (1.0,)),
        (WhereTested.WHERE_MEANT, "time", THREE, THREE, THREE),
        (WhereTested.FULL, "accuracy", (1.0,), (1.0,), (1.0,)),
        (WhereTested.FULL, "time", (1.0,), (1.0,), (1.0,)),
    ],
)
def test_a_method_sees_tests_and_recommends_the_fractions_that_it_says(tests, goal, seen, targets, tested):
    recipe = TRIMTUNER.but(tests=tests)
    narrow = recipe.narrow(problem_of(goal))
    assert narrow.space.fractions == seen
    assert narrow.target_fractions == targets
    assert recipe.tested_fractions(narrow) == tested


@pytest.mark.parametrize("tests", WhereTested)
def test_a_narrowed_problem_differs_in_its_fractions_only(tests):
    problem = problem_of("time")
    narrow = TRIMTUNER.but(tests=tests).narrow(problem)
    assert (narrow.goal, narrow.constraints, narrow.budget) == (problem.goal, problem.constraints, problem.budget)
    assert narrow.space.pool() is problem.space.pool()
    assert narrow.space.snapshots
    assert problem.space.fractions == THREE
    assert (narrow is problem) == (narrow.space.fractions == THREE)
    assert TRIMTUNER.but(tests=tests).narrow(narrow) is narrow


METHODS_BY_TESTS = {
    WhereTested.ANYWHERE: {"trimtuner", "trimtuner-gp", "trimtuner-dt", "fabolas", "hyperband", "bohb"},
    WhereTested.BELOW_FULL: {"fabulinus"},
    WhereTested.WHERE_MEANT: {"nephele", "random"},
    WhereTested.FULL: {"lynceus", "cherrypick", "eic", "eic-usd", "ei"},
}


@pytest.mark.parametrize("tests", WhereTested)
def test_every_method_tests_where_its_paper_does(tests):
    assert {name for name in METHODS if recipe_named(name).tests is tests} == METHODS_BY_TESTS[tests]


# --- differences between methods


@pytest.mark.parametrize(
    ("one", "other", "parts"),
    [
        ("nephele", "lynceus", {"acquisition", "tests", "confidence"}),
        ("eic", "eic-usd", {"acquisition"}),
        ("eic", "ei", {"acquisition", "incumbent", "needs"}),
        ("ei:ignore_constraints=true", "ei", {"needs"}),
        ("hyperband", "bohb", {"design"}),
        ("random", "hyperband", {"design", "tests", "needs"}),
        ("fabolas", "fabulinus", {"design", "filter", "acquisition", "incumbent", "tests", "needs"}),
        ("nephele", "nephele:horizon=1", {"acquisition"}),
        ("nephele", "nephele:dropping=true", {"design", "filter"}),
        ("fabulinus", "fabulinus:horizon=1", {"acquisition"}),
        ("fabolas", "fabolas:scale=linear", {"surrogate", "time_surrogate"}),
        ("trimtuner", "trimtuner:horizon=1", {"acquisition", "least_on_full_data"}),
        ("trimtuner-dt", "trimtuner-dt:filter=none", {"filter"}),
        ("cherrypick", "cherrypick:model=trees", {"surrogate"}),
        ("cherrypick", "cherrypick:stop_below=0", {"stop"}),
    ],
)
def test_methods_differ_in_these_parts_only(one, other, parts):
    assert differing_parts(recipe_named(one), recipe_named(other)) == parts


@pytest.mark.parametrize("name", ["nephele", "lynceus", "cherrypick", "random", "hyperband", "bohb"])
def test_those_that_recommend_no_forecast_recommend_what_measured_best(name):
    assert recipe_named(name).incumbent == BestMeasured()


def test_only_cherrypick_ends_by_itself():
    assert [name for name in METHODS if recipe_named(name).stop is not None] == ["cherrypick"]


def test_a_check_asks_every_need_and_the_stop_rule():
    problem = problem_of("accuracy", fractions=(1.0,))
    TRIMTUNER.check(problem)
    with pytest.raises(InputError, match="no fraction below 1"):
        TRIMTUNER.but(needs=(lambda _: None, several_fractions)).check(problem)
    with pytest.raises(InputError, match="NotWorthItsPrice"):
        TRIMTUNER.but(stop=NotWorthItsPrice() | AfterTrials(9)).check(problem)


def test_any_surrogate_with_the_skill_may_learn_from_earlier_studies():
    class LearnsFromOthers:
        def fit(self, *_): ...
        def fit_on(self, *_): ...
        def fit_likeliest(self, *_): ...

    TRIMTUNER.but(surrogate=LearnsFromOthers()).require_learning()
    with pytest.raises(InputError, match="learn_from"):
        TRIMTUNER.but(surrogate=BaggedTrees(7)).require_learning()


@pytest.mark.parametrize(
    ("offered", "tested"),
    [
        ((1 / 52, 3 / 52, 0.25, 1.0), (3 / 52, 0.25, 1.0)),
        ((0.01, 0.02, 0.04, 0.08, 1.0), (0.04, 0.08, 1.0)),
        ((0.03, 0.06, 1.0), (0.03, 0.06, 1.0)),
        ((1 / 60, 0.1, 1.0), (1 / 60, 0.1, 1.0)),
        ((1 / 16, 1 / 8, 1.0), (1 / 16, 1 / 8, 1.0)),
        ((0.01, 1.0), (0.01, 1.0)),
        ((1.0,), (1.0,)),
    ],
)
def test_of_shares_below_six_per_cent_the_default_tests_the_largest_only(offered, tested):
    space = Space({"x": Choice(list(range(8)))}, fractions=offered)
    study = Study(space, maximize="accuracy", seed=3)
    assert TRIMTUNER.tested_fractions(study.problem) == tested
    assert study.ask().fraction == tested[0]
    assert TRIMTUNER.but(small=0.0).tested_fractions(study.problem) == offered


def test_where_any_share_may_be_the_answer_all_are_tested():
    space = Space({"x": Choice(list(range(8)))}, fractions=(0.01, 0.05, 1.0))
    study = Study(space, minimize="time", constraints=["accuracy >= 0.9"])
    assert TRIMTUNER.tested_fractions(study.problem) == (0.01, 0.05, 1.0)


def test_what_was_measured_on_a_share_that_is_not_tested_is_learnt_from():
    space = Space({"x": Choice(list(range(8)))}, fractions=(0.01, 0.05, 1.0))
    study = Study(space, maximize="accuracy", seed=3)
    study.enqueue({"x": 5}, fraction=0.01)
    study.tell(study.ask(), accuracy=0.9, time=1.0)
    assert study.recommend().config == {"x": 5}
