"""What is exported can be imported as it is, whatever it is; what is not understood is refused in words."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trimtuner as tt
from trimtuner.commands.transfer import as_csv, further_metrics, read_measurements
from trimtuner.problem.cells import cell_of_text, text_of_cell
from trimtuner.problem.history import Measurement, Trial
from trimtuner.problem.problem import Problem
from trimtuner.problem.reports import outcome_of_success
from trimtuner.problem.rows import row_of_measurement
from trimtuner.problem.values import written
from written_jobs import trimtuner, write_job

NUMBERS = st.integers(-(10**20), 10**20) | st.floats(-1e300, 1e300)
SCALARS = (
    NUMBERS
    | st.booleans()
    | st.none()
    | st.text(max_size=5)
    | st.sampled_from(["1", "1.0", "true", "nan", " 7", "=1", "'=1", "-2", "a;'@b", 'a,"b"\n', "null", "[1]"])
)
VALUES = SCALARS | st.lists(SCALARS, max_size=2).map(tuple)
DISTINCT = (lambda value: value, lambda value: written(value).lower())  # 1 and "1" are told apart by JSON alone
CHOICES = st.lists(VALUES, min_size=1, max_size=4, unique_by=DISTINCT).map(tt.Choice)
MACHINES = tt.Cloud({"small": tt.VM(vcpus=1, memory_gib=2, price_per_hour=0.36)}, vm_count=[1, 2])


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    parameters = {"größe": draw(CHOICES), "flag": tt.Choice([True, False])}
    if draw(st.booleans()):
        parameters["only_sometimes"] = tt.Choice(draw(CHOICES).values, when="flag == True")
    if draw(st.booleans()):
        parameters["rate"] = tt.Float(1e-5, 1.0, scale="log")
    fractions = draw(st.sampled_from([[1.0], [0.1, 0.10001, 1.0], [1 / 60, 1 / 3]]))
    space = tt.Space(parameters, cloud=draw(st.sampled_from([None, MACHINES])), fractions=fractions, snapshots=True)
    minimize = draw(st.sampled_from([None, "latency_ms"]))
    return Problem.of(space, "accuracy", minimize, draw(st.sampled_from([(), ("size_mb <= 4",)])), None, None)


@st.composite
def studies(draw: st.DrawFn) -> tuple[Problem, list[Measurement]]:
    problem = draw(problems())
    pool, finite = problem.space.pool(), st.floats(allow_nan=False, allow_infinity=False)
    further = st.sampled_from(["latency_ms", "size_mb", "perplexity", "flag", "rates", "fractions", "costs", "μ"])
    measurements = []
    for position in draw(st.lists(st.integers(0, len(pool) - 1), max_size=4)):
        trial = Trial(0, pool.configuration(position), problem.space.fractions[-1])
        metrics = {
            **draw(st.dictionaries(further, finite)),
            **{name: draw(finite) for name in problem.reported_metrics},
            "accuracy": draw(st.floats(0, 1)),
            draw(st.sampled_from(["time", "cost"])): draw(st.floats(1e-9, 1e9)),
        }
        shares = draw(st.sets(st.sampled_from(problem.space.fractions[:-1]))) if problem.space.fractions[:-1] else ()
        measurements += outcome_of_success(problem, trial, metrics, dict.fromkeys(shares, metrics)).measurements
    return problem, measurements


@pytest.mark.parametrize("form", ["csv", "json"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(study=studies())
def test_what_was_exported_is_imported_to_the_last_digit(tmp_path, form, study):
    problem, measurements = study
    rows = [row_of_measurement(measurement) for measurement in measurements]
    path = tmp_path / f"all.{form}"
    path.write_bytes((as_csv(rows) if form == "csv" else json.dumps(rows)).encode())
    found = read_measurements(path, problem)
    assert found == measurements
    for one, other in zip(found, measurements, strict=True):
        told, before = dict(one.configuration), dict(other.configuration)
        assert {name: type(value) for name, value in told.items()} == {name: type(v) for name, v in before.items()}


def test_a_whole_number_that_no_float_is_keeps_its_last_digit_in_a_tuple_too(tmp_path):
    space = tt.Space({"sizes": tt.Choice([(2**53 + 1, 16), (2**53, 16)])})
    problem = Problem.of(space, "accuracy", None, (), None, None)
    (tmp_path / "all.csv").write_text(f'sizes,accuracy,time\n"[{2**53 + 1}, 16]",0.5,1\n"[{2**53}, 16.0]",0.5,1\n')
    found = read_measurements(tmp_path / "all.csv", problem)
    assert [one.configuration["sizes"] for one in found] == [(2**53 + 1, 16), (2**53, 16)]


TEXTS = st.text("'=+-@;\t\r\n ,\"1a＝", max_size=8) | st.text(max_size=8)  # noqa: RUF001  (as wide as a letter there)


def cells_as_divided_at(divider: str, line: str) -> list[str]:
    """What a spreadsheet makes of a line that looks for another divider: only a quote at a cell's beginning counts."""
    return next(csv.reader([line], delimiter=divider), [])


@settings(max_examples=300, deadline=None)
@given(text=TEXTS, head=TEXTS)
def test_no_spreadsheet_runs_a_cell_that_was_exported(text, head):
    written = as_csv([{"x": 1, head: text, "y": text}])
    everywhere = list(csv.reader(io.StringIO(written, newline="")))
    assert not any(cell.startswith(("\t", "\r")) for row in everywhere for cell in row)
    for divider in ";\t":
        everywhere += [cells_as_divided_at(divider, line) for line in re.split("[\r\n]", written)]
    for cell in (cell for row in everywhere for cell in row):
        assert not cell.strip().startswith(tuple("=+-@＝")) or _is_number(cell)  # noqa: RUF001


@settings(max_examples=300, deadline=None)
@given(text=TEXTS)
def test_a_text_is_read_from_its_cell_as_it_was(text):
    assert text_of_cell(cell_of_text(text)) == text


def test_numbers_and_apostrophes_stay_as_they_are():
    for text in ("-0.5", "+1e-05", "-3", "'tis", "rock 'n' roll", "a-b", "a = b"):
        assert cell_of_text(text) == text
        assert text_of_cell(text) == text
    assert as_csv([{"x": -0.5, "y": -1e-05, "z": -3}]) == "x,y,z\n-0.5,-1e-05,-3\n"


@pytest.mark.parametrize("formula", ["=cmd|' /C calc'!A0", "@SUM(1)", "  +1+cmd|x", "-2+3", "\t=1", "a;=1", "＝1"])  # noqa: RUF001
def test_a_formula_gets_an_apostrophe(formula):
    assert "'" in as_csv([{formula: 1}]).replace(formula, "")
    assert cell_of_text(formula) != formula


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+", text.strip()) is not None


PROBLEM = Problem.of(
    tt.Space({"x": tt.Choice(["", "a"]), "depth": tt.Int(1, 10**6)}, cloud=MACHINES, fractions=[0.5, 1]),
    "accuracy",
    None,
    (),
    None,
    None,
)
ROW = {"vm_type": "small", "vm_count": 1, "x": "", "depth": 3, "fraction": 0.5, "accuracy": 0.9, "time": 2.0}


def read(tmp_path: Path, *rows: dict[str, object]) -> list[Measurement]:
    path = tmp_path / "some.csv"
    path.write_text(as_csv(rows))
    return read_measurements(path, PROBLEM)


def test_an_empty_text_is_a_value_where_it_is_offered(tmp_path):
    (measurement,) = read(tmp_path, ROW)
    assert measurement.configuration["x"] == ""


def test_a_further_number_is_a_further_metric_and_named(tmp_path):
    measurements = read(tmp_path, {**ROW, "accuracy_top5": 0.99, "loss": 1.5})
    assert measurements[0].metrics == {"accuracy": 0.9, "time": 2.0, "cost": 2.0 * 0.36 / 3600} | {
        "accuracy_top5": 0.99,
        "loss": 1.5,
    }
    assert further_metrics(measurements, PROBLEM) == ["accuracy_top5", "loss"]


@pytest.mark.parametrize("name", ["vm_count", "depth", "fraction", "accuracy"])
def test_a_misspelt_column_is_named_with_the_right_one(tmp_path, name):
    wrong = name[:-2] + name[:-3:-1]
    row = {wrong if column == name else column: value for column, value in ROW.items()}
    with pytest.raises(tt.InputError, match=rf"row 1: unknown column '{wrong}'; did you mean '{name}'\?"):
        read(tmp_path, row)


def test_a_further_column_of_words_is_refused(tmp_path):
    with pytest.raises(tt.InputError, match=r"unknown column 'note'.*further metric.*'on monday'"):
        read(tmp_path, {**ROW, "note": "on monday"})


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", '[{"x": ' + "9" * 5000 + "}]", "thousands of digits"),
        ("a.csv", "x,depth,accuracy,time\na," + "9" * 5000 + ",0.5,1\n", "row 1: depth"),
        ("a.csv", "x,depth,accuracy,time\na," + "9" * 4000 + ",0.5,1\n", "row 1: depth"),
        ("a.csv", "x,depth,accuracy,time\na,3," + "9" * 5000 + ",1\n", "row 1: accuracy is '999"),
        ("a.csv", "x\n" + "a" * 200_000 + "\n", "row 1 is no CSV"),
        ("a.csv", "x\n\0\0\0\n", "row 1: "),
        ("a.csv", 'x\n"a', "row 1 is no CSV"),
        ("a.csv", "x,x\na,a\n", "two columns 'x'"),
        ("a.csv", "x\na,3\n", "row 1 has 2 cells for 1 columns"),
    ],
    ids=lambda text: text[:20],
)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_text(content)
    cheap = Problem.of(
        tt.Space({"x": tt.Choice(["", "a"]), "depth": tt.Int(1, 10**6)}), "accuracy", None, (), None, None
    )
    with pytest.raises(tt.InputError) as refused:
        read_measurements(path, cheap)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


def test_a_study_goes_into_another_one_through_the_command_line(tmp_path):
    (tmp_path / "a").mkdir()
    job = write_job(tmp_path / "a", trials=3, nap=0, method="random")
    script = tmp_path / "a" / "train.py"
    script.write_text(script.read_text().replace('{"accuracy":', '{"latency_ms": 1 / 3, "x": 7, "accuracy":'))
    trimtuner("run", job, "-q")
    other = tmp_path / "a" / "other.yaml"
    other.write_text(job.read_text().replace("name: quick", "name: other"))
    for form in ("csv", "json"):
        exported = trimtuner("export", job, "--format", form).stdout
        (tmp_path / f"all.{form}").write_text(exported)
        again = "3 measurements added, 0 known" if form == "csv" else "0 measurements added, 3 known"
        told = trimtuner("import", other, tmp_path / f"all.{form}").stdout
        assert told == f"{again} already\nkept besides what the study is about: latency_ms\n"
        # The metric x, which has the name of a parameter, is there as well.
        assert trimtuner("export", other, "--format", form).stdout == exported
