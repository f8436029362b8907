"""Tables of measurements: how they are found and read, and the facts about those the papers measured."""

from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import trimtuner as tt
from trimtuner.engines.table import Table, known_tables
from trimtuner.problem.problem import Constraint

DESCRIPTION = {
    "title": "A tiny job",
    "configuration": {"size": "size", "mode": "mode"},
    "fraction": {"column": "rows", "full": 1000},
    "metrics": {"accuracy": "acc", "time": "seconds"},
    "price_per_hour": {"column": "usd"},
    "problem": {"maximize": "accuracy", "constraints": ["cost <= 2"]},
}
TOML = """
title = "A tiny job"
[configuration]
size = "size"
mode = "mode"
[fraction]
column = "rows"
full = 1000
[metrics]
accuracy = "acc"
time = "seconds"
[price_per_hour]
column = "usd"
[problem]
maximize = "accuracy"
constraints = ["cost <= 2"]
"""
HEADER = "size,mode,rows,acc,seconds,usd"
LINES = ["1,sync,500,0.6,1800,1", "1,sync,1000,0.7,3600,1", "2,async,500,0.7,1800,2", "2,async,1000,0.8,3600,2"]
CSV = "\n".join([HEADER, *LINES])


def rows_of(*lines, header=HEADER):
    return [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]


def read(lines=LINES, **changes):
    return Table.read("tiny", rows_of(*lines), {**DESCRIPTION, **changes})


def write(folder, name="tiny", csv=CSV, toml=TOML):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.csv").write_text(csv, encoding="utf-8")
    if toml is not None:
        (folder / f"{name}.toml").write_text(toml, encoding="utf-8")
    return folder / f"{name}.csv"


# --- reading ----------------------------------------------------------------------------------------------------------


def test_a_table_becomes_a_space_with_prices_and_cells_with_costs():
    table = read()
    assert table.configurations == [{"size": 1, "mode": "sync"}, {"size": 2, "mode": "async"}]
    assert table.space.fractions == (0.5, 1.0)
    assert [table.space.price_per_hour(dict(one)) for one in table.configurations] == [1.0, 2.0]
    assert table.cell({"size": 2, "mode": "async"}, 0.5).metrics == {"accuracy": 0.7, "time": 1800.0, "cost": 1.0}
    assert (table.maximize, table.minimize, table.constraints) == ("accuracy", None, ("cost <= 2",))
    assert table.title == "A tiny job"
    assert table.full_run_costs() == [1.0, 2.0]


def test_the_price_of_machines_counts_workers_book_keepers_and_helpers():
    rows = rows_of("a,3,1000,0.5,3600", header="vm,n,rows,acc,seconds")
    price = {"vm": {"a": 0.1, "big": 0.7}, "more_of_same_type": 1, "helpers": ["big"]}
    description = {**DESCRIPTION, "configuration": {"vm_type": "vm", "vm_count": "n"}, "price_per_hour": price}
    table = Table.read("machines", rows, description)
    assert table.full_run_costs() == pytest.approx([(3 + 1) * 0.1 + 0.7])


def test_a_cost_column_wins_over_time_and_price():
    table = read(["1,sync,1000,0.7,5,1"], metrics={"accuracy": "acc", "cost": "seconds"})
    assert table.cell({"size": 1, "mode": "sync"}, 1.0).metrics == {"accuracy": 0.7, "cost": 5.0}


def test_a_failed_row_has_a_kind_and_a_cost_but_no_accuracy():
    table = Table.read(
        "tiny",
        rows_of("1,sync,1000,,3600,1,oom", "2,async,1000,0.8,3600,2,", header=HEADER + ",why"),
        {**DESCRIPTION, "failed": "why"},
    )
    assert table.cell({"size": 1, "mode": "sync"}, 1.0).failed == "oom"
    assert table.cell({"size": 1, "mode": "sync"}, 1.0).metrics == {"time": 3600.0, "cost": 1.0}
    assert table.cell({"size": 2, "mode": "async"}, 1.0).failed is None


@pytest.mark.parametrize(
    "hostile",
    [
        "__import__('os').system('true')",
        "<script>alert(1)</script>",
        "../../etc/passwd",
        "'; DROP TABLE trials; --",
        "{size}",
        "%s%n",
        "nan",
        "inf",
        "-Infinity",
        "1_000",
        "True",
        "None",
        "",
        " ",
        "\u202egpj.exe",
    ],
)
def test_hostile_names_in_a_table_stay_text(hostile):
    rows = rows_of("1,sync,1000,0.7,3600,1", "2,async,1000,0.8,3600,2")
    rows[0]["mode"] = hostile
    table = Table.read(hostile, rows, {**DESCRIPTION, "title": hostile})
    assert table.configurations[0]["mode"] == hostile
    assert table.title == hostile
    pool = table.space.pool()
    assert pool.position({"size": 1, "mode": hostile}) == 0
    assert np.isfinite(pool.rows).all()


def test_a_parameter_may_have_a_name_that_is_no_identifier():
    table = read(configuration={"size; rm -rf": "size", "mode": "mode"})
    assert table.space.names == ("size; rm -rf", "mode")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"lines": []}, "has no rows"),
        ({"lines": [LINES[0], LINES[0]]}, "two rows for .* at 0.5"),
        ({"lines": ["1,sync,500,high,1800,1"]}, "column 'acc': 'high' is not a number"),
        ({"lines": ["1,sync,500,nan,1800,1"]}, "column 'acc': 'nan' is not a number"),
        ({"lines": ["1,sync,500,0.5,inf,1"]}, "column 'seconds': 'inf' is not a number"),
        ({"lines": ["1,sync,5000,0.5,1,1"]}, r"fraction 5.0 is outside \(0, 1\]"),
        ({"lines": ["1,sync,0,0.5,1,1"]}, r"fraction 0.0 is outside \(0, 1\]"),
        ({"lines": ["1,sync,500,0.5,1,0"]}, "must be above 0 USD per hour"),
        ({"metrics": {"accuracy": "acuracy", "time": "seconds"}}, "no column 'acuracy'"),
        ({"metrics": {"accuracy": "ac", "time": "seconds"}}, r"no column 'ac'; did you mean 'acc'\?"),
        ({"metrics": {"accuracy": "acc"}}, "names no column for time"),
        ({"metrics": None}, r"no section \[metrics\]"),
        ({"problem": None}, r"no section \[problem\]"),
        ({"problem": {"maximize": "accuracy", "constraints": "cost <= 1"}}, "must be a list of texts"),
        ({"fraction": {"column": "rows", "full": 0}}, "must be above 0"),
        ({"fraction": {"column": "rows", "full": "all"}}, "is 'all', not a number"),
        ({"price_per_hour": {}}, r"\[price_per_hour\] needs a column"),
        ({"price_per_hour": {"vm": {"a": 1.0}}}, "need vm_type in"),
        ({"metric": {}}, r"unknown key 'metric'; did you mean 'metrics'\?"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(changes, complaint):
    with pytest.raises(tt.InputError, match=complaint):
        read(**changes)


@pytest.mark.parametrize(
    ("price", "complaint"),
    [
        ({"vm": {"b": 1.0}}, "no price for 'a'"),
        ({"vm": {"a": 1.0}, "helpers": ["b"]}, "no price for 'b'"),
        ({"vm": {"a": "dear"}}, "the price of 'a' is 'dear', not a number"),
        ({"vm": {"a": 1.0}, "helpers": "a"}, "must be a list of VM types"),
        ({"vm": {"a": 1.0}, "more_of_same_type": "one"}, "more_of_same_type is 'one', not a number"),
    ],
)
def test_a_price_that_cannot_be_worked_out_is_refused(price, complaint):
    rows = rows_of("a,3,1000,0.5,3600", header="vm,n,rows,acc,seconds")
    description = {**DESCRIPTION, "configuration": {"vm_type": "vm", "vm_count": "n"}, "price_per_hour": price}
    with pytest.raises(tt.InputError, match=complaint):
        Table.read("machines", rows, description)


def test_a_cell_that_was_not_measured_is_an_input_error():
    with pytest.raises(tt.InputError, match=r"no row for .* at fraction 0\.25"):
        read().cell({"size": 1, "mode": "sync"}, 0.25)
    with pytest.raises(tt.InputError, match="no row for"):
        read(LINES[:3]).cell({"size": 2, "mode": "async"}, 1.0)


def test_a_table_without_full_data_has_no_full_runs_to_compare_with():
    with pytest.raises(tt.InputError, match="no row on full data"):
        read([LINES[0], LINES[2]]).full_run_costs()


def test_feasible_values_are_those_within_every_limit_at_the_fractions_asked_for():
    limits = [Constraint.parse("cost <= 1"), Constraint.parse("accuracy >= 0.65")]
    assert sorted(read().feasible_values("accuracy", limits, [0.5, 1.0])) == [0.7, 0.7]
    assert list(read().feasible_values("cost", limits, [0.5])) == [1.0]
    assert list(read().feasible_values("accuracy", [], [1.0])) == [0.7, 0.8]


# --- finding ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A working folder without a table in it."""
    folder = tmp_path / "work" / "here"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("TRIMTUNER_DATA", raising=False)
    return folder


def test_a_table_is_found_by_its_path(elsewhere):
    path = write(elsewhere / "tables")
    assert Table.find(str(path)).name == "tiny"
    assert Table.find("tables/tiny.csv").title == "A tiny job"


@pytest.mark.usefixtures("elsewhere")
def test_a_table_is_found_by_name_in_the_folder_of_the_environment(tmp_path, monkeypatch):
    write(tmp_path / "data")
    monkeypatch.setenv("TRIMTUNER_DATA", str(tmp_path / "data"))
    assert Table.find("tiny").configurations == read().configurations
    assert "tiny" in known_tables()


@pytest.mark.usefixtures("elsewhere")
def test_a_table_in_the_folder_of_the_environment_hides_a_shipped_one_of_its_name(tmp_path, monkeypatch):
    write(tmp_path / "data", name="digits")
    monkeypatch.setenv("TRIMTUNER_DATA", str(tmp_path / "data"))
    assert Table.find("digits").title == "A tiny job"


def test_no_folder_is_searched_that_nobody_named(elsewhere):
    write(elsewhere.parent / "shared" / "data")
    write(elsewhere)
    assert "tiny" not in known_tables()
    with pytest.raises(tt.InputError, match=r"no table 'tiny' in the package; known are cnn, digits, "):
        Table.find("tiny")


@pytest.mark.usefixtures("elsewhere")
def test_every_name_that_is_shipped_has_its_measurements_and_its_description():
    shipped = Path(str(resources.files("trimtuner") / "tables"))
    assert known_tables() == sorted(file.stem for file in shipped.glob("*.toml"))
    assert known_tables() == sorted(file.stem for file in shipped.glob("*.csv") if file.stat().st_size > 1000)


def test_a_folder_of_the_same_name_does_not_hide_a_table(elsewhere):
    (elsewhere / "cnn").mkdir()
    assert Table.find("cnn").name == "cnn"


def test_a_mark_at_the_start_of_the_file_is_no_part_of_the_first_column(elsewhere):
    path = write(elsewhere / "tables", csv="\ufeff" + CSV)
    assert len(Table.find(str(path)).configurations) == 2


@pytest.mark.usefixtures("elsewhere")
def test_an_unknown_table_is_refused_with_what_there_is(tmp_path, monkeypatch):
    write(tmp_path / "data")
    monkeypatch.setenv("TRIMTUNER_DATA", str(tmp_path / "data"))
    with pytest.raises(
        tt.InputError, match=r"no table 'tinny' .*known are .*tiny.*did you mean 'tiny'\?.*TRIMTUNER_DATA"
    ):
        Table.find("tinny")
    with pytest.raises(tt.InputError, match=r"there is no table at 'missing\.csv'"):
        Table.find("missing.csv")


@pytest.mark.usefixtures("elsewhere")
def test_a_table_without_a_description_is_not_listed(tmp_path, monkeypatch):
    write(tmp_path / "data", toml=None)
    monkeypatch.setenv("TRIMTUNER_DATA", str(tmp_path / "data"))
    assert "tiny" not in known_tables()


@pytest.mark.parametrize(
    ("csv", "toml", "complaint"),
    [
        (CSV, None, "has no description; write nobody.toml beside it"),
        (CSV, "title = ", "Invalid value"),
        ("\n".join([HEADER, "1,sync,500"]), TOML, "ends before its column"),
        ("", TOML, "has no rows"),
        (HEADER, TOML, "has no rows"),
    ],
)
def test_a_file_that_is_no_table_is_an_input_error(elsewhere, csv, toml, complaint):
    path = write(elsewhere / "tables", "nobody", csv, toml)
    with pytest.raises(tt.InputError, match=complaint):
        Table.find(str(path))


def test_a_file_that_is_no_text_is_an_input_error(elsewhere):
    path = write(elsewhere / "tables")
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(tt.InputError, match="is not a CSV in UTF-8"):
        Table.find(str(path))


# --- what the papers print of their tables ----------------------------------------------------------------------------


@pytest.fixture(params=["cnn", "rnn"])
def measured(request, elsewhere):  # noqa: ARG001 (they are at hand in any folder)
    return Table.find(request.param)


FACTS = {
    "cnn": {
        "limit": 0.1,
        "feasible": 111,
        "near_best": 39,
        "best": 0.98747,
        "config": {"vm_type": "t2.2xlarge", "vm_count": 1, "learning_rate": 1e-3, "batch_size": 256, "mode": "async"},
        "rows": 208,
        "full_rows": 61,
        "saving": 4.1,
    },
    "rnn": {
        "limit": 0.02,
        "feasible": 178,
        "near_best": 28,
        "best": 0.98047,
        "config": {"vm_type": "t2.medium", "vm_count": 4, "learning_rate": 1e-3, "batch_size": 16, "mode": "async"},
        "rows": 264,
        "full_rows": 104,
        "saving": 2.1,
    },
}


def test_a_table_of_the_papers_has_288_configurations_at_five_sizes(measured):
    assert len(measured.configurations) == 288
    assert measured.space.fractions == pytest.approx((1 / 60, 0.1, 0.25, 0.5, 1.0))
    assert len(measured.cells) == 288 * 5
    assert measured.space.snapshots


def test_the_price_is_that_of_workers_book_keeper_and_parameter_server(measured):
    price = {"t2.small": 0.023, "t2.medium": 0.0464, "t2.xlarge": 0.1856, "t2.2xlarge": 0.3712}
    for configuration in measured.configurations:
        expected = (configuration["vm_count"] + 1) * price[configuration["vm_type"]] + 0.3712
        assert measured.space.price_per_hour(dict(configuration)) == pytest.approx(expected)
        for fraction in measured.space.fractions:
            metrics = measured.cell(configuration, fraction).metrics
            assert metrics["cost"] == pytest.approx(expected * metrics["time"] / 3600)


def test_the_feasible_configurations_and_the_best_are_those_of_the_papers(measured):
    facts = FACTS[measured.name]
    limit = Constraint.parse(f"cost <= {facts['limit']}")
    assert [Constraint.parse(text).limit for text in measured.constraints] == [facts["limit"]]
    values = list(measured.feasible_values("accuracy", [limit], [1.0]))
    assert len(values) == facts["feasible"]
    assert max(values) == pytest.approx(facts["best"], abs=5e-6)
    assert sum(value >= 0.95 * max(values) for value in values) == facts["near_best"]
    assert measured.cell(facts["config"], 1.0).metrics["accuracy"] == max(values)


def test_the_least_cost_with_enough_accuracy_is_that_of_the_papers(measured):
    facts = FACTS[measured.name]
    limits = [Constraint.parse("accuracy >= 0.85"), Constraint.parse("time <= 300s")]
    everywhere = list(measured.feasible_values("cost", limits, measured.space.fractions))
    at_full_data = list(measured.feasible_values("cost", limits, [1.0]))
    assert (len(everywhere), len(at_full_data)) == (facts["rows"], facts["full_rows"])
    assert min(at_full_data) / min(everywhere) == pytest.approx(facts["saving"], abs=0.05)


# --- the table that is shipped ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("elsewhere")
def test_the_shipped_table_has_every_configuration_at_every_fraction():
    table = Table.find("digits")
    assert len(table.space.fractions) == 5
    assert table.space.fractions[-1] == 1.0
    missing = [
        (dict(configuration), fraction)
        for configuration in table.configurations
        for fraction in table.space.fractions
        if (tuple(configuration.items()), fraction) not in table.cells
    ]
    assert missing == []
    values = {name: {configuration[name] for configuration in table.configurations} for name in table.space.names}
    assert len(table.configurations) == np.prod([len(listed) for listed in values.values()])


@pytest.mark.usefixtures("elsewhere")
def test_the_shipped_table_is_a_problem_worth_solving():
    table = Table.find("digits")
    limits = [Constraint.parse(text) for text in table.constraints]
    feasible = list(table.feasible_values("accuracy", limits, [1.0]))
    everything = list(table.feasible_values("accuracy", [], [1.0]))
    assert 0 < len(feasible) < len(everything)
    assert all(0.0 <= accuracy <= 1.0 for accuracy in everything)
    near_best = sum(accuracy >= 0.99 * max(feasible) for accuracy in feasible)
    assert near_best < len(everything) / 2
