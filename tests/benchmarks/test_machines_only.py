"""The benchmark of machines alone: its figures from searches whose answer is known."""

from types import SimpleNamespace

import pytest

from benchmarks.machines_only import HIGHEST_CNO, RUNS, WORKLOADS, load, score


def moment(spent, quality, is_feasible):
    return SimpleNamespace(spent=spent, quality=quality, is_feasible=is_feasible)


def test_a_recommendation_counts_by_what_was_spent_and_broken_deadlines_count_most():
    run = SimpleNamespace(moments=[moment(1.5, 0.9, False), moment(2.5, 0.5, True), moment(6.0, 1.0, True)])
    found = score([(1.0, run), (1.0, run)])
    assert RUNS == (1, 2, 3, 5, 8, 12)
    assert found.cno == (HIGHEST_CNO, HIGHEST_CNO, 2.0, 2.0, 1.0, 1.0)
    assert found.broken == (2, 2, 0, 0, 0, 0)


def test_money_is_in_full_runs_of_each_workload():
    run = SimpleNamespace(moments=[moment(9.0, 1.0, True)])
    assert score([(10.0, run)]).cno[0] == 1.0
    assert score([(1.0, run)]).cno[0] == HIGHEST_CNO


@pytest.mark.parametrize("path", sorted(WORKLOADS.glob("*.csv")), ids=lambda path: path.stem)
def test_half_of_a_workload_keeps_its_deadline(path):
    table = load(path)
    (limit,) = table.constraints
    deadline = float(limit.removeprefix("time <= "))
    kept = sum(cell.metrics["time"] <= deadline for cell in table.cells.values())
    assert kept == pytest.approx(len(table.cells) / 2, abs=1)
