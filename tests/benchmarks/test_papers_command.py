"""``make papers`` from end to end, on a small scale."""

import json
import re
import shutil
import signal
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.papers import jobs, plots
from benchmarks.papers.claims import Verdict
from benchmarks.papers.command import app
from benchmarks.papers.jobs import CNN, RNN, load, multilayer
from trimtuner.errors import InputError
from waiting import wait_until

pytestmark = pytest.mark.xdist_group("papers")  # one small run for all of them
REPOSITORY = Path(__file__).parents[2]
SMALL = ["--seeds", "1", "--trials", "5", "--jobs", "2"]


@pytest.fixture(scope="module")
def tables():
    return load(CNN), load(RNN)


def papers(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def start_papers(*arguments):
    command = [sys.executable, "-m", "benchmarks.papers", *map(str, arguments)]
    return subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.DEVNULL)


def chosen(*names):
    return [part for name in names for part in ("--only", name)]


def _files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def pictures_of(report):
    return re.findall(r"!\[[^\]]*\]\(([^)]+)\)", report.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def small(request, tmp_path_factory):
    """One small run of everything that takes searches, which the tests below look at."""
    request.getfixturevalue("tables")
    folder = tmp_path_factory.mktemp("papers")
    papers(
        *SMALL,
        *chosen("fig1", "fig3", "fig6.10", "fig6.13", "fig7.1"),
        "--cache",
        folder / "results.jsonl",
        "--out",
        folder / "out",
    )
    return folder


@pytest.mark.slow
def test_the_report_has_its_plots_and_a_verdict_on_every_claim(small):
    report = small / "out" / "paper.md"
    links = pictures_of(report)
    assert {"plots/fig1.png", "plots/fig2.png", "plots/fig3.png", "plots/fig6.13.png", "plots/fig7.2.png"} <= set(links)
    for link in links:
        plot = report.parent / link
        assert plot.read_bytes().startswith(b"\x89PNG")
        assert plot.stat().st_size < 80_000
    text = report.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    assert len(rows) > 20
    words = "|".join(re.escape(verdict) for verdict in Verdict)
    assert all(re.search(rf"\| ([^|]*: )?({words}|not run)(; [^|]*)? \|", row) for row in rows)
    assert "multilayer" in text
    assert str(Path.cwd()) not in text


@pytest.mark.slow
def test_a_second_run_does_nothing_and_writes_the_same_report(small, tmp_path):
    results = small / "results.jsonl"
    before = results.read_bytes()
    for folder in ("once", "again"):
        papers(*SMALL, *chosen("fig6.13"), "--cache", results, "--out", tmp_path / folder)
    assert results.read_bytes() == before
    assert _files(tmp_path / "once") == _files(tmp_path / "again")


@pytest.mark.slow
def test_a_report_on_a_part_says_how_much_of_it_there_is(small, tmp_path):
    few = ["--seeds", "2", "--trials", "5", "--report-only", *chosen("fig6.13", "fig6.1")]
    papers(*few, "--cache", small / "results.jsonl", "--out", tmp_path)
    text = (tmp_path / "paper.md").read_text(encoding="utf-8")
    assert re.search(r"from \d+ of \d+ searches", text)
    assert "1 of 2" in text


@pytest.mark.usefixtures("tables")
def test_static_tables_need_no_search(tmp_path):
    papers("--only", "static", "--cache", tmp_path / "none.jsonl", "--out", tmp_path)
    assert not (tmp_path / "none.jsonl").exists()
    assert "64 of 64 counts are as printed" in (tmp_path / "paper.md").read_text(encoding="utf-8")


def test_the_third_job_is_taken_by_its_path(tables, tmp_path):
    with resources.as_file(resources.files("trimtuner") / "tables" / "rnn.csv") as place:
        shutil.copy(place, tmp_path / "mine.csv")
    job = multilayer(tmp_path / "mine.csv")
    assert load(job).constraints == ("cost <= 0.06",)
    assert jobs.digest(load(job)) == jobs.digest(tables[1])
    papers(
        "--only", "static", "--multilayer", tmp_path / "mine.csv", "--cache", tmp_path / "c.jsonl", "--out", tmp_path
    )  # fmt: skip
    assert "Table 6.5" in (tmp_path / "paper.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("tables")
def test_a_kill_loses_no_finished_search(tmp_path):
    results = tmp_path / "results.jsonl"
    few = ["--seeds", "3", "--trials", "12", "--jobs", "2", *chosen("fig6.10")]
    arguments = [*few, "--cache", results, "--out", tmp_path]
    process = start_papers(*arguments)
    try:
        wait_until(lambda: results.exists() and results.read_bytes().count(b"\n") >= 3)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    finished = results.read_bytes()
    finished = finished[: finished.rindex(b"\n") + 1]
    papers(*arguments)
    lines = results.read_bytes()
    assert lines.startswith(finished)
    keys = [json.dumps(json.loads(line)["key"]) for line in lines.splitlines() if line.endswith(b"}}")]
    assert len(keys) == len(set(keys)) == 3 * 2 * 5
    assert (tmp_path / "paper.md").exists()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(plots, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="pip install matplotlib"):
        papers("--cache", tmp_path / "c.jsonl", "--out", tmp_path)


def test_an_unknown_figure_is_an_error_that_lists_them(tmp_path):
    with pytest.raises(InputError, match=r"fig6\.13"):
        papers("--only", "fig6.99", "--cache", tmp_path / "c.jsonl", "--out", tmp_path)


def test_from_a_clone_a_wrong_word_is_one_line_on_standard_error(tmp_path):
    command = [sys.executable, "-m", "benchmarks.papers", "--only", "fig6.99", "--out", str(tmp_path)]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert re.fullmatch(r"papers: .*fig6\.99.*\n", ended.stderr)


def test_a_missing_third_table_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        multilayer(tmp_path / "none.csv")


def test_the_command_line_starts_light():
    code = "import sys; import benchmarks.papers.command; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
