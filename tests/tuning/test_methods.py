"""Methods by name: what each is called, what may be said of it in a text, and what is answered to a wrong word."""

import inspect

import pytest

from trimtuner.decisions.designs import AcrossFractions, LatinHypercube
from trimtuner.decisions.filters import HighestConstrainedAccuracy, KeepAll, KeepRandom, SearchByCMAES, SearchByDirect
from trimtuner.decisions.halving import Bohb, Hyperband
from trimtuner.decisions.lookahead import Lookahead
from trimtuner.decisions.stopping import LittleImprovement
from trimtuner.errors import InputError
from trimtuner.models.forest import SomeColumns
from trimtuner.models.gaussian_process import GaussianProcess
from trimtuner.models.trees import PlainTrees
from trimtuner.tuning.methods import split_text
from trimtuner.tuning.recipes import METHODS, TRIMTUNER, TRIMTUNER_DT, TRIMTUNER_GP, recipe_named

NAMES = [
    *("trimtuner", "trimtuner-gp", "trimtuner-dt", "fabulinus", "fabolas", "nephele", "lynceus", "cherrypick"),
    *("eic", "eic-usd", "ei", "random", "hyperband", "bohb"),
]
OPTIONS = {
    "trimtuner": {"horizon": 0},
    "trimtuner-gp": {"filter": "cea", "beta": 0.10, "horizon": 0, "literal": False},
    "trimtuner-dt": {"filter": "cea", "beta": 0.10, "horizon": 0, "literal": False},
    "fabulinus": {"beta": 0.10, "horizon": 0, "overhead": 0.2, "scale": "log"},
    "fabolas": {"initial": 1, "ignore_constraints": False, "overhead": 0.2, "scale": "log"},
    "nephele": {"horizon": 0, "trees": 5, "initial_budget": None, "dropping": False},
    "lynceus": {"horizon": 0, "trees": 5, "initial_budget": None},
    "cherrypick": {"initial_budget": None, "model": "gp", "trees": 5, "stop_below": 0.1},
    "eic": {"initial": 4},
    "eic-usd": {"initial": 4},
    "ei": {"initial": 4, "ignore_constraints": False},
    "random": {},
    "hyperband": {"eta": 3.0},
    "bohb": {"eta": 3.0},
}
every_method = pytest.mark.parametrize("name", METHODS)


# --- names


def test_the_names_are_exactly_these():
    assert list(METHODS) == NAMES


@every_method
def test_a_method_says_in_one_line_each_what_it_optimises_what_it_needs_and_when_to_use_it(name):
    method = METHODS[name]
    assert method.name == name == name.lower().strip()
    for line in (method.optimises, method.needs, method.use):
        assert line.strip() == line != ""
        assert "\n" not in line
        assert len(line) < 80
        assert not line.endswith(".")
    assert inspect.getdoc(method.make)


@every_method
def test_the_options_of_a_method_and_their_defaults_are_these(name):
    assert METHODS[name].options == OPTIONS[name]
    assert list(METHODS[name].options) == list(OPTIONS[name])


@every_method
def test_no_option_is_the_same_as_every_option_at_its_default(name):
    recipe = METHODS[name].recipe({})
    assert recipe_named(name) == recipe_named(f"{name}:") == recipe
    assert METHODS[name].recipe(METHODS[name].options) == recipe
    given = {option: default for option, default in OPTIONS[name].items() if default is not None}
    assert recipe_named(name, **given) == recipe


# --- texts


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("trimtuner:horizon=1", {"horizon": 1}),
        ("trimtuner-gp:filter=random,beta=0.2", {"filter": "random", "beta": 0.2}),
        ("trimtuner-dt:beta=1,horizon=2", {"beta": 1, "horizon": 2}),
        ("fabulinus:beta=5e-2", {"beta": 0.05}),
        ("fabolas:initial=3,ignore_constraints=true", {"initial": 3, "ignore_constraints": True}),
        ("fabolas:ignore_constraints=no", {"ignore_constraints": False}),
        ("ei:ignore_constraints=yes", {"ignore_constraints": True}),
        ("ei:ignore_constraints=false,initial=2", {"ignore_constraints": False, "initial": 2}),
        ("nephele:horizon=1,trees=10,initial_budget=2.5", {"horizon": 1, "trees": 10, "initial_budget": 2.5}),
        ("lynceus:initial_budget=3", {"initial_budget": 3}),
        ("cherrypick:model=trees,trees=9,stop_below=0", {"model": "trees", "trees": 9, "stop_below": 0}),
        ("eic:initial=7", {"initial": 7}),
        ("eic-usd:initial=7", {"initial": 7}),
        ("hyperband:eta=2", {"eta": 2}),
        ("bohb:eta=2.5", {"eta": 2.5}),
        (" nephele : horizon = 1 , trees = 10 ", {"horizon": 1, "trees": 10}),
    ],
)
def test_a_text_and_the_options_it_speaks_of_are_one_recipe(text, options):
    name = text.partition(":")[0].strip()
    assert recipe_named(text) == recipe_named(name, **options)
    defaults = recipe_named(name)
    assert (recipe_named(text) == defaults) == all(OPTIONS[name][option] == value for option, value in options.items())


def test_options_of_a_text_and_others_are_joined():
    assert recipe_named("nephele:horizon=1", trees=10) == recipe_named("nephele:horizon=1,trees=10")


def test_a_text_is_split_at_its_first_colon_its_commas_and_equals_signs():
    assert split_text("nephele") == ("nephele", {})
    assert split_text("nephele:a=1,b=x=y") == ("nephele", {"a": "1", "b": "x=y"})


@pytest.mark.parametrize(
    "text", ["nephele:horizon", "nephele:horizon=", "nephele:=1", "nephele:horizon=1,", "nephele:,", "nephele: "]
)
def test_a_text_that_is_not_of_options_and_values_is_refused(text):
    with pytest.raises(InputError, match="is not of the form option=value, such as horizon=1"):
        recipe_named(text)


@pytest.mark.parametrize(
    ("text", "options"),
    [("nephele:horizon=1,horizon=2", {}), ("nephele:horizon=1, horizon =1", {}), ("nephele:horizon=1", {"horizon": 1})],
)
def test_an_option_given_twice_is_refused(text, options):
    with pytest.raises(InputError, match=f"{text!r} gives horizon twice"):
        recipe_named(text, **options)


# --- wrong words


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("trimtuner-pg", "trimtuner-gp"),
        ("trim-tuner", "trimtuner"),
        ("nefele", "nephele"),
        ("eic_usd", "eic-usd"),
        ("hyper-band:eta=2", "hyperband"),
        ("Fabolas", "fabolas"),
        ("cherry-pick", "cherrypick"),
    ],
)
def test_a_name_mistyped_is_answered_with_the_nearest(typed, meant):
    with pytest.raises(InputError, match=f"did you mean '{meant}'"):
        recipe_named(typed)


@pytest.mark.parametrize("typed", ["zzzz", "", ":horizon=1", "42"])
def test_a_name_like_no_other_is_answered_with_all_of_them(typed):
    with pytest.raises(InputError) as error:
        recipe_named(typed)
    assert all(name in str(error.value) for name in NAMES)
    assert "did you mean" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("nephele:horizn=1", r"its options are horizon, trees, initial_budget, dropping; did you mean 'horizon'\?"),
        ("cherrypick:stop_blow=0.2", r"did you mean 'stop_below'\?"),
        ("ei:ignore_constraint=true", r"did you mean 'ignore_constraints'\?"),
        ("hyperband:zzz=1", r"method 'hyperband' has no option 'zzz'; its options are eta$"),
        ("random:horizon=1", r"method 'random' has no option 'horizon'; its options are none$"),
    ],
)
def test_an_option_mistyped_is_answered_with_the_nearest_and_all_of_them(text, answer):
    with pytest.raises(InputError, match=answer):
        recipe_named(text)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("trimtuner-dt:filter=ceaa", r"'ceaa' is none of cea, none, random, direct, cmaes; did you mean 'cea'\?"),
        ("trimtuner-gp:filter=cma-es", r"did you mean 'cmaes'\?"),
        ("cherrypick:model=tree", r"'tree' is none of gp, trees; did you mean 'trees'\?"),
        ("nephele:horizon=1.5", "option horizon of method 'nephele': '1.5' is not a whole number"),
        ("nephele:horizon=one", "'one' is not a whole number"),
        ("nephele:horizon=-1", "horizon=-1 must be at least 0"),
        ("trimtuner:horizon=-1", "horizon=-1 must be at least 0"),
        ("trimtuner-dt:horizon=-2", "horizon=-2 must be at least 0"),
        ("lynceus:trees=1", "trees=1 must be at least 2"),
        ("cherrypick:model=trees,trees=1", "trees=1 must be at least 2"),
        ("nephele:initial_budget=0", "initial_budget=0 must be above 0"),
        ("nephele:initial_budget=nan", "initial_budget=nan must be above 0"),
        ("nephele:initial_budget=inf", "initial_budget=inf must be above 0"),
        ("nephele:initial_budget=cheap", "'cheap' is not a number"),
        ("trimtuner-gp:beta=0", "beta=0 must be above 0 and at most 1"),
        ("fabulinus:beta=1.1", "beta=1.1 must be above 0 and at most 1"),
        ("trimtuner-dt:filter=none,beta=2", "beta=2 must be above 0 and at most 1"),
        ("fabolas:initial=0", "initial=0 must be at least 1"),
        ("fabolas:ignore_constraints=maybe", "'maybe' is neither true nor false"),
        ("eic:initial=0", "initial=0 must be at least 1"),
        ("hyperband:eta=1", "eta=1 must be above 1"),
        ("bohb:eta=inf", "eta=inf must be above 1"),
        ("cherrypick:stop_below=nan", "stop_below"),
        ("cherrypick:stop_below=-0.1", "stop_below"),
        ("cherrypick:stop_below=inf", "above 0"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_right(text, answer):
    with pytest.raises(InputError, match=answer):
        recipe_named(text)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("nephele", {"horizon": True}),
        ("nephele", {"horizon": 1.0}),
        ("nephele", {"horizon": None}),
        ("nephele", {"initial_budget": [1]}),
        ("trimtuner-gp", {"filter": 3}),
        ("fabulinus", {"beta": False}),
        ("ei", {"ignore_constraints": 7}),
        ("ei", {"ignore_constraints": None}),
    ],
)
def test_a_value_of_a_wrong_type_is_refused(name, options):
    (option,) = options
    with pytest.raises(InputError, match=f"option {option} of method '{name}'"):
        recipe_named(name, **options)


# --- what an option changes


def test_the_named_recipes_are_those_of_the_page():
    assert recipe_named("trimtuner") == TRIMTUNER
    assert recipe_named("trimtuner-gp") == TRIMTUNER_GP
    assert recipe_named("trimtuner-dt") == TRIMTUNER_DT


@pytest.mark.parametrize("name", ["trimtuner-gp", "trimtuner-dt"])
@pytest.mark.parametrize(
    ("filter_name", "expected"),
    [
        ("cea", HighestConstrainedAccuracy(0.3)),
        ("none", KeepAll()),
        ("random", KeepRandom(0.3)),
        ("direct", SearchByDirect(0.3)),
        ("cmaes", SearchByCMAES(0.3)),
    ],
)
def test_a_filter_is_chosen_by_its_name(name, filter_name, expected):
    recipe = recipe_named(name, filter=filter_name, beta=0.3)
    assert recipe.filter == expected
    assert recipe.but(filter=recipe_named(name).filter) == recipe_named(name)


def test_designs_take_their_number_or_money_from_the_options():
    assert recipe_named("eic:initial=6").design == LatinHypercube(6)
    assert recipe_named("fabolas:initial=2").design == AcrossFractions(2)
    for name in ("nephele", "lynceus", "cherrypick"):
        assert recipe_named(f"{name}:initial_budget=2").design == LatinHypercube(initial_budget=2.0)
        assert recipe_named(name).design == LatinHypercube()
    assert recipe_named("hyperband:eta=2").design == Hyperband(2.0)
    assert recipe_named("bohb:eta=2").design == Bohb(2.0)


def test_models_are_chosen_by_their_options():
    assert isinstance(recipe_named("cherrypick").surrogate, GaussianProcess)
    assert recipe_named("cherrypick:model=trees").surrogate == PlainTrees(SomeColumns(), 5)
    assert recipe_named("cherrypick:model=trees,trees=9").surrogate == PlainTrees(SomeColumns(), 9)
    assert (
        recipe_named("nephele:trees=9").surrogate
        == recipe_named("lynceus:trees=9").surrogate
        == PlainTrees(SomeColumns(), 9)
    )


@pytest.mark.parametrize("name", ["nephele", "lynceus", "trimtuner-gp", "trimtuner-dt"])
def test_the_horizon_is_that_of_the_lookahead(name):
    acquisition = recipe_named(f"{name}:horizon=2").acquisition
    assert isinstance(acquisition, Lookahead)
    assert acquisition.horizon == 2


def test_cherrypick_ends_by_itself_unless_told_not_to():
    assert recipe_named("cherrypick").stop == LittleImprovement(0.1, after=6)
    assert recipe_named("cherrypick:stop_below=0.02").stop == LittleImprovement(0.02, after=6)
    assert recipe_named("cherrypick:stop_below=0").stop is None
