"""CNO over money, from made-up searches with known answers."""

import math

import pytest

from benchmarks import least_cost
from benchmarks.kept import Kept, load_table, unit_of
from benchmarks.least_cost import Search, Trace, cno_at, facts_of, scenarios_of, searches_of, units_until, write_report

SEEDS, TRIALS = range(4), 3


def trace(spent, cno, feasible=None):
    count = len(spent)
    quality = tuple(1.0 / one for one in cno)
    return Trace(spent, (1.0,) * count, (0.01,) * count, quality, feasible or (True,) * count, (1.0,) * count)


@pytest.fixture
def scenario():
    return scenarios_of("digits")[0]


@pytest.mark.parametrize(
    ("cno", "feasible", "level", "units"),
    [
        ((4.0, 1.5, 1.0), None, 1.5, 2.0),
        ((1.0, 4.0, 1.0), None, 1.5, 3.0),  # for good, not the first time
        ((1.0, 1.0, 4.0), None, 1.5, math.inf),
        ((1.0, 1.0, 1.0), (True, False, True), 1.1, 3.0),  # cheap and not feasible is no merit
        ((1.0, 1.0, 1.0), None, 1.1, 1.0),
    ],
)
def test_units_until_a_cno_for_good(cno, feasible, level, units):
    assert units_until([trace((1.0, 2.0, 3.0), cno, feasible)], level) == [units]


def test_cno_is_infinite_until_something_feasible_is_recommended():
    traces = [trace((1.0, 2.0), (2.0, 1.0)), trace((1.0, 2.0), (2.0, 4.0), (False, True))]
    assert cno_at(traces, [0.5, 1.0, 2.0, 50.0], 50.0).tolist() == [math.inf, math.inf, 2.5, 2.5]
    assert cno_at(traces, [0.5, 1.0, 2.0, 50.0], 90.0).tolist() == pytest.approx([math.inf, math.inf, 3.7, 3.7])


def test_limits_follow_from_the_table(scenario):
    full = [one.metrics for (_, s), one in load_table("digits").cells.items() if s == 1.0]
    best, times = max(one["accuracy"] for one in full), sorted(one["time"] for one in full)
    middle = (times[len(times) // 2 - 1] + times[len(times) // 2]) / 2
    assert scenario.limits == (f"accuracy >= {0.95 * best:.6g}", f"time <= {middle:.6g}")
    assert scenario.budget == pytest.approx(10 * sum(one["cost"] for one in full) / len(full))


def test_the_facts_of_a_problem(scenario):
    facts = facts_of(scenario)
    assert 0 < facts.feasible < facts.measured == len(load_table("digits").cells)
    assert 1 <= facts.within[0] <= facts.within[1] <= facts.within[2] <= facts.feasible
    assert facts.best_at_full_data >= 1.0


def test_the_thesis_has_budgets_of_its_own():
    thesis = least_cost.Scenario("cnn-thesis", "cnn", ("accuracy >= 0.85", "time <= 300"), 20.0, 5.0)
    assert thesis.methods["Nephele"] == "nephele:horizon=0,trees=5,initial_budget=5"
    assert thesis.methods["CherryPick"] == "cherrypick:model=trees,trees=5,initial_budget=5,stop_below=0"


def test_a_search_ends_within_its_trials_and_keeps_a_row_a_trial(scenario):
    columns = least_cost.run_search(Search(scenario, "random", 0, 3))
    assert {len(values) for values in columns.values()} == {3}
    assert columns["spent"] == sorted(columns["spent"])


def test_the_report_is_made_from_the_kept_searches_alone(tmp_path, scenario, monkeypatch):
    monkeypatch.setattr(least_cost, "replay", None)  # nothing may run
    kept, unit = Kept(tmp_path / "kept.jsonl"), unit_of(load_table("digits"))
    made_up = {
        "trimtuner": [(4.0, 1.2, 1.0)] * 4,
        "random": [(9.0, 9.0, 9.0), (9.0, 9.0, 1.4), (9.0, 9.0, 1.4), (9.0, 3.0, 3.0)],
    }
    for label, searches in searches_of(scenario, SEEDS, TRIALS).items():
        for search, cno in zip(searches, made_up.get(label, ()), strict=False):
            one = trace((0.5 * unit, 1.0 * unit, 5.0 * unit), cno)
            kept.add(search, one.as_plain())
    page = write_report(Kept(tmp_path / "kept.jsonl"), [scenario], SEEDS, TRIALS, tmp_path).read_text(encoding="utf-8")
    assert (tmp_path / "plots" / "least-cost-digits.png").stat().st_size > 0
    assert "from 8 searches" in page
    assert "| digits | 1 (4 of 4) | - | - | - | never (2 of 4) |" in page  # units to a CNO of 1.5; between 5 and never
    assert "| trimtuner | 4 | 4 / 4 | 1.20 / 1.20 | 1.20 / 1.20 | 1 / 1 | 1 / 1 | 1 / 1 |" in page
    assert "| random | 4 | 9 / 9 | 9 / 9 | 9 / 9 | 2.20 / 7.20 | 2.20 / 7.20 | 2.20 / 7.20 |" in page
    assert "| trimtuner | 5 / 5 (4 of 4) | 1 / 1 (4 of 4) | 1 / 1 (4 of 4) | 5 | 3 | 0.010 |" in page
