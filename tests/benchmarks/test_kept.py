"""Finished searches stay finished, and a table that is not ready is not replayed."""

import json
from dataclasses import dataclass, replace

import pytest

from benchmarks.kept import Kept, load_table, method_digest, run_missing, trouble_with


@dataclass(frozen=True)
class Square:
    number: int

    def identity(self):
        return {"number": self.number}


def square(one):
    if one.number < 0:
        raise ValueError("below 0")
    return {"spent": [float(one.number**2), None]}


def test_a_result_is_found_again_and_the_later_of_two_counts(tmp_path):
    path = tmp_path / "deep" / "results.jsonl"
    Kept(path).add(Square(3), {"spent": [1.0]})
    Kept(path).add(Square(3), {"spent": [2.0, None]})
    assert Kept(path).find(Square(3)) == {"spent": [2.0, None]}
    assert Kept(path).find(Square(4)) is None


def test_half_a_line_spoils_only_itself(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps({"key": {"number": 1}, "result": {"spent": [1.0]}}) + '\n{"key": {"num')
    Kept(path).add(Square(2), {"spent": [4.0]})
    assert [Kept(path).find(Square(number)) for number in (1, 2)] == [{"spent": [1.0]}, {"spent": [4.0]}]


def test_only_what_is_missing_runs_and_a_failure_leaves_the_others(tmp_path, capsys):
    kept = Kept(tmp_path / "results.jsonl")
    kept.add(Square(2), {"spent": [-1.0]})
    with pytest.raises(SystemExit, match=r"1 of 2 searches failed.*below 0"):
        run_missing([Square(2), Square(-1), Square(3)], square, kept, processes=1)
    assert [kept.find(Square(number)) for number in (2, -1, 3)] == [{"spent": [-1.0]}, None, {"spent": [9.0, None]}]
    assert "2 of 3 searches to run" in capsys.readouterr().err


def test_a_table_with_holes_or_without_its_limit_is_not_ready():
    digits = load_table("digits")
    assert trouble_with(digits) is None
    one_less = replace(digits, cells=dict(list(digits.cells.items())[1:]))
    assert trouble_with(one_less) == "lacks 1 measurements"
    assert "has a limit that is none" in trouble_with(replace(digits, constraints=("cost <= COST",)))


def test_a_method_is_known_by_its_parts():
    assert method_digest("nephele") == method_digest("nephele:horizon=0")
    assert method_digest("nephele") != method_digest("nephele:trees=6")
