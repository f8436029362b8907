"""What `import trimtuner` offers: exactly these names, and nothing heavy until one of them is used."""

import subprocess
import sys

import pytest

import trimtuner as tt

PUBLIC = {
    "VM",
    "Acquisition",
    "AfterMoney",
    "AfterTime",
    "AfterTrials",
    "BaggedTrees",
    "BestMeasured",
    "BestPredictedFeasible",
    "CheapStart",
    "Choice",
    "Cloud",
    "ConstrainedImprovement",
    "Estimate",
    "ExpectedCost",
    "Float",
    "Front",
    "History",
    "InformationAboutBest",
    "InputError",
    "Int",
    "LatinHypercube",
    "LittleImprovement",
    "MostExpected",
    "NoAnswer",
    "NotWorthItsPrice",
    "RandomSearch",
    "Recipe",
    "Recommendation",
    "SearchOver",
    "Space",
    "Spot",
    "Study",
    "Trial",
    "TrimTunerError",
    "ValueOfRecommendation",
    "WhereTested",
    "recipe_named",
    "report",
}


def test_the_public_names_are_exactly_these():
    assert set(tt.__all__) == PUBLIC
    assert len(tt.__all__) == len(PUBLIC)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_there_and_knows_its_own_name(name):
    assert getattr(tt, name).__name__ == name
    assert name in dir(tt)


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Stduy'"):
        _ = tt.Stduy


def test_importing_everything_gives_the_public_names():
    names = {}
    exec("from trimtuner import *", names)  # noqa: S102  (the only way to write it outside a module's top)
    assert names.keys() >= PUBLIC


def test_errors_are_sorted_by_what_the_caller_should_do_next():
    for error in (tt.InputError, tt.NoAnswer, tt.SearchOver):
        assert issubclass(error, tt.TrimTunerError)
    assert issubclass(tt.InputError, ValueError)
    assert not issubclass(tt.NoAnswer, tt.InputError)
    assert not issubclass(tt.SearchOver, tt.NoAnswer)


def test_importing_the_package_loads_nothing_heavy():
    script = (
        "import sys, trimtuner; print([m for m in ('numpy', 'scipy', 'typer', 'threadpoolctl') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_that_of_the_project():
    from importlib.metadata import version

    assert tt.__version__ == version("trimtuner")


def test_the_package_says_that_it_is_typed():
    from importlib.resources import files

    assert (files("trimtuner") / "py.typed").is_file()
