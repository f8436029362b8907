"""The public jobs that the comparison with other tools is made on."""

from benchmarks.kept import load_table, trouble_with
from benchmarks.peers.ratios import FAMILIES
from benchmarks.tables.public_jobs import family_of, public_jobs, shrink

LONG = """\
depth,fraction,accuracy,time,price
1,0.5,0.6,10,1
1,1,0.7,20,1
2,0.5,0.8,30,1
2,1,0.9,40,1
"""


def test_each_is_complete_and_half_of_it_is_within_the_limit():
    """240 configurations at six shares, and a limit at the median cost (README of the measurements)."""
    assert len(public_jobs()) == 21
    for name in ("lcb126025", "lcb189873", "rpart1053", "rpart41143"):  # the first and the last of each family
        table = load_table(name)
        assert trouble_with(table) is None
        assert (len(table.configurations), len(table.space.fractions)) == (240, 6)
        limit = float(table.constraints[0].removeprefix("cost <= "))
        assert sum(cost <= limit for cost in table.full_run_costs()) == 120


def test_each_belongs_to_a_family_of_which_is_said_whether_it_was_tuned_on():
    assert {family_of(name) for name in public_jobs()} == {"lcb", "rpart"} <= FAMILIES.keys()


def test_the_wide_form_keeps_every_number(tmp_path):
    (tmp_path / "made1.csv").write_text(LONG)
    (tmp_path / "made1.toml").write_text('[configuration]\ndepth = "depth"\n')
    shrink(tmp_path / "made1.csv", tmp_path / "wide.csv")
    assert (tmp_path / "wide.csv").read_text().splitlines() == [
        "depth,accuracy at 0.5,accuracy at 1,time at 0.5,time at 1",
        "1,0.6,0.7,10,20",
        "2,0.8,0.9,30,40",
    ]


def test_a_number_is_where_it_was():
    """The first configuration of one job at its smallest share, as the long form has it."""
    table = load_table("rpart14")
    cell = table.cell(table.configurations[0], 0.03)
    assert (cell.metrics["accuracy"], cell.metrics["time"]) == (0.12948, 0.5349)
