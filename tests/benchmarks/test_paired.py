"""A change against the default, search by search: which recipe is meant, and what the pairs come to."""

import math

import pytest

from benchmarks import paired
from trimtuner.errors import InputError
from trimtuner.tuning.recipes import TRIMTUNER, eic

OWN = """
from __future__ import annotations
from dataclasses import dataclass
import trimtuner as tt

@dataclass(frozen=True)
class First:
    def choose(self, belief, before=None):
        return 0

OWN = tt.Recipe(surrogate=tt.BaggedTrees(8), design=tt.RandomSearch(), incumbent=First())
"""


def test_a_recipe_is_named_or_stands_in_a_file(tmp_path):
    (tmp_path / "own_recipe.py").write_text(OWN)
    assert paired.recipe_at("trimtuner") == TRIMTUNER
    assert paired.recipe_at("eic:initial=7") == eic(7)
    assert type(paired.recipe_at(f"{tmp_path}/own_recipe.py:OWN").incumbent).__name__ == "First"


@pytest.mark.parametrize("text", ["own_recipe.py:NONE", "own_recipe.py:tt", "absent.py:OWN", "absent"])
def test_a_recipe_that_is_not_there_is_refused(tmp_path, text):
    (tmp_path / "own_recipe.py").write_text(OWN)
    with pytest.raises(InputError):
        paired.recipe_at(f"{tmp_path}/{text}")


def test_a_recipe_that_differs_in_a_number_is_another_search():
    identities = [
        paired.Search("linear", method, 1, 9).identity() for method in ("eic", "eic:initial=4", "eic:initial=5")
    ]
    assert identities[0] == identities[1] != identities[2]


def test_a_search_whose_runs_report_on_their_way_is_another_one_with_more_to_go_by():
    plain, reporting = (paired.Search("rnn", "trimtuner", 1, 12, snapshots) for snapshots in (False, True))
    assert plain.identity() != reporting.identity()
    assert paired.run_search(plain)["spent"][:3] == paired.run_search(reporting)["spent"][:3]  # the start is small
    assert paired.run_search(plain) != paired.run_search(reporting)


def search(spent: list[float], recommended: list[float]) -> paired.Columns:
    return {"spent": list(spent), "recommended": list(recommended), "asking": [0.5] * len(spent)}


def test_ratios_are_of_money_for_good_and_their_error_is_that_of_the_logarithm():
    """Half and twice the money: no change in the geometric mean, by logs that are 2 ln 2 apart."""
    good = search([1.0, 2.0], [1.0, 1.0])
    late = search([1.0, 2.0], [0.0, 1.0])
    page = paired.report([("linear", good, late), ("cnn", late, good)])
    error = f"{math.log(2.0) * math.sqrt(2.0) / math.sqrt(2.0):.2f}"
    assert f"| all | 2 | {' | '.join([f'1.00 ± {error}'] * 5)} | 1.00 |" in page
    assert f"| the papers' jobs | 1 | {' | '.join(['2.00'] * 5)} | 1.00 |" in page
    assert f"| jobs that ship | 1 | {' | '.join(['0.50'] * 5)} | 1.00 |" in page


def test_a_pair_is_run_and_reported(tmp_path, capsys):
    arguments = ["eic", "--tables", "linear", "--seeds", "1", "--trials", "5", "--processes", "1"]
    paired.main([*arguments, "--cache", str(tmp_path / "kept.jsonl")])
    told = capsys.readouterr().out
    assert "| jobs that ship | 1 |" in told
    paired.main([*arguments, "--cache", str(tmp_path / "kept.jsonl"), "--report-only"])
    assert capsys.readouterr().out == told
