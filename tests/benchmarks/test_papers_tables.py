"""What the papers print of the measurements themselves is what our tables hold."""

import re

import numpy as np
import pytest

from benchmarks.papers import facts, papers
from benchmarks.papers.facts import Cells
from benchmarks.papers.jobs import CNN, RNN, full_data_only, load
from benchmarks.papers.section_space import values_of, write_space
from benchmarks.papers.section_tables import compared, is_rounding_of, write_tables
from trimtuner.problem.catalog import built_in_catalog

JOBS = {"cnn": CNN, "rnn": RNN}


@pytest.fixture(scope="module", params=sorted(JOBS))
def job(request):
    return JOBS[request.param]


@pytest.fixture(scope="module")
def cells(job):
    return Cells.of(load(job))


def numbers(counts):
    return tuple(count.number for count in counts)


@pytest.mark.parametrize("parameter", papers.TABLE_I)
def test_table_i_is_what_the_paper_prints(job, parameter):
    assert values_of(load(job), parameter) == set(papers.TABLE_I[parameter])


@pytest.mark.parametrize("vm_type", papers.TABLE_I_MACHINES)
def test_the_machines_of_table_i_are_what_the_paper_prints(job, vm_type):
    vcpus, memory, counts = papers.TABLE_I_MACHINES[vm_type]
    assert values_of(load(job), "vm_count", vm_type) == set(counts)
    assert {vcpus * count for count in counts} == set(papers.TABLE_5_1["cores"])
    assert (built_in_catalog()[vm_type].vcpus, built_in_catalog()[vm_type].memory_gib) == (vcpus, memory)


def test_the_space_differs_from_what_is_printed_in_one_learning_rate_of_table_5_1_only(job):
    text = "\n".join(write_space([job]))
    assert re.findall(r"\| (\w+) \| [^|]* \| \*\*", text) == ["learning_rate"]


def test_table_ii_is_what_the_paper_prints(job, cells):
    assert facts.feasible_and_close(cells, job.cost_limit) == numbers(papers.TABLE_II[job.name])


def test_table_6_2_is_what_the_thesis_prints(job, cells):
    assert facts.meeting_both(cells) == numbers(papers.TABLE_6_2[job.name])


@pytest.mark.parametrize("size", papers.SUBSAMPLED)
def test_every_cell_of_tables_6_3_and_6_4_is_what_the_thesis_prints(job, cells, size):
    printed = tuple(numbers(row) for row in papers.CROSS_TABLES[job.name][size])
    assert facts.cross_table(cells, papers.SUBSAMPLED[size]) == printed


def test_table_7_1_is_what_the_thesis_prints(job, cells):
    assert facts.within_cost_and_accurate(cells, job.cost_limit) == numbers(papers.TABLE_7_1[job.name])


def test_the_best_with_less_data_is_cheaper_by_what_the_thesis_prints(job, cells):
    ratio, fraction = facts.cheaper_with_less_data(cells)
    printed, at = papers.CHEAPER_WITH_LESS_DATA[job.name]
    assert (round(ratio, 1), fraction) == (printed, at)


def test_the_heat_map_at_the_thesis_limits_is_the_reduction_of_its_text(job, cells):
    printed = {"cnn": 75.5, "rnn": 52.3}[job.name]
    assert round(100 * facts.reduction_map(cells, [0.85], [300.0])[0, 0], 1) == printed


def test_an_initial_budget_buys_on_average_what_its_mean_cost_says(cells):
    budget = 50 * cells.cost.mean()
    # The trial that passes the budget counts too: half a trial more than the quotient, and some for the skew.
    assert facts.trials_within(cells.cost, budget).mean() == pytest.approx(51, abs=1.5)


@pytest.mark.usefixtures("cells")
def test_full_data_only_keeps_the_measurements_and_prices_of_full_data(job):
    table = load(job)
    narrow = full_data_only(table)
    assert narrow.space.fractions == (1.0,)
    assert narrow.full_run_costs() == table.full_run_costs()
    assert [narrow.space.price_per_hour(dict(one)) for one in narrow.configurations] == [
        table.space.price_per_hour(dict(one)) for one in table.configurations
    ]


def test_printed_tables_of_the_papers_add_up():
    """A slip in copying them would show here: every cross table counts all 288 configurations."""
    for tables in papers.CROSS_TABLES.values():
        for rows in tables.values():
            assert sum(count.number for row in rows for count in row) == 288


def test_a_count_that_differs_is_shown_beside_the_printed_one():
    assert compared(papers.Count(61, "21.18"), 61, 288) == "61 *same*"
    assert compared(papers.Count(61, "21.18"), 60, 288) == "**60**, printed 61"
    assert "14.93 %" in compared(papers.Count(43, "14.94"), 43, 288)


@pytest.mark.parametrize(
    ("printed", "value", "is_one"),
    [("61.8", 61.8056, True), ("13.88", 13.8889, True), ("14.94", 14.9306, False), ("4.1", 4.088, True)],
)
def test_a_printed_number_may_be_rounded_or_cut_off(printed, value, is_one):
    assert is_rounding_of(printed, value) is is_one


def test_nothing_feasible_is_not_a_number_and_only_less_data_saves_all():
    cells = Cells(
        fractions=(0.5, 1.0),
        accuracy=np.array([[0.7, 0.9], [0.6, 0.8]]),
        cost=np.array([[1.0, 4.0], [0.5, 2.0]]),
        time=np.array([[10.0, 100.0], [10.0, 100.0]]),
    )
    saved = facts.reduction_map(cells, [0.6, 0.7, 0.95], [50.0, 200.0])
    assert saved[1].tolist()[:2] == [0.75, 0.5]
    assert saved[0].tolist()[:2] == [1.0, 1.0]
    assert np.isnan(saved[:, 2]).all()


def test_the_section_reports_no_cell_that_differs(job, cells, tmp_path):
    text = "\n".join(write_tables([(job, cells)], tmp_path))
    assert "64 of 64 counts are as printed" in text
    assert ", printed" not in text
