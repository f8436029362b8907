"""Recipes: named, composed of parts, and different only in what they say."""

from dataclasses import fields

import pytest

from trimtuner.decisions.acquisition import ExpectedCost
from trimtuner.decisions.designs import AcrossFractions, CheapStart
from trimtuner.decisions.entropy import ChanceIncumbentFeasible, InformationAboutBest
from trimtuner.decisions.filters import HighestConstrainedAccuracy, KeepAll
from trimtuner.decisions.incumbents import BestPredictedFeasible, MostExpected
from trimtuner.errors import InputError
from trimtuner.models.trees import BaggedTrees
from trimtuner.tuning.recipe import Recipe
from trimtuner.tuning.recipes import METHODS, TRIMTUNER, TRIMTUNER_DT, TRIMTUNER_GP, recipe_named

REPLACEMENTS = {
    "surrogate": BaggedTrees(count=7),
    "design": CheapStart(11),
    "filter": KeepAll(),
    "acquisition": ExpectedCost(),
    "incumbent": BestPredictedFeasible(0.5),
    "takes_snapshots": True,
}


def differing_parts(one, other):
    return {part.name for part in fields(Recipe) if getattr(one, part.name) != getattr(other, part.name)}


def test_every_variant_of_trimtuner_has_its_name():
    assert METHODS["trimtuner"] is TRIMTUNER
    assert METHODS["trimtuner-gp"] is TRIMTUNER_GP
    assert METHODS["trimtuner-dt"] is TRIMTUNER_DT


@pytest.mark.parametrize("name", METHODS)
def test_a_name_finds_its_recipe(name):
    assert recipe_named(name) is METHODS[name]
    assert name == name.lower().strip()


@pytest.mark.parametrize(("typed", "meant"), [("trimtuner-pg", "trimtuner-gp"), ("trim-tuner", "trimtuner")])
def test_a_name_mistyped_is_answered_with_the_nearest(typed, meant):
    with pytest.raises(InputError, match=f"did you mean '{meant}'"):
        recipe_named(typed)


def test_a_name_like_no_other_is_answered_with_all_of_them():
    with pytest.raises(InputError) as error:
        recipe_named("zzzz")
    assert all(name in str(error.value) for name in METHODS)
    assert "did you mean" not in str(error.value)


@pytest.mark.parametrize("part", REPLACEMENTS)
def test_but_changes_only_what_it_names(part):
    changed = TRIMTUNER_GP.but(**{part: REPLACEMENTS[part]})
    assert differing_parts(changed, TRIMTUNER_GP) == {part}
    assert getattr(changed, part) == REPLACEMENTS[part]


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
