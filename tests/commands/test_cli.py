"""The command line: light to start, readable by scripts, one line for what is wrong."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trimtuner import __version__, cli
from trimtuner.tuning.recipes import METHODS
from written_jobs import starts, status, trimtuner, write_job

CSV = ["size,mode,rows,acc,seconds,usd"] + [
    f"{size},{mode},{rows},{(0.5 + 0.1 * size + 0.03 * (mode == 'async')) * (rows / 1000) ** 0.1},{3.6 * rows},{size}"
    for size in (1, 2, 3, 4)
    for mode in ("sync", "async")
    for rows in (100, 500, 1000)
]
TOML = """
title = "A <b>tiny</b> job"
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
FAST = ["--method", "trimtuner-dt", "--seeds", "2", "--trials", "24"]


@pytest.fixture
def tiny(tmp_path):
    (tmp_path / "tiny.csv").write_text("\n".join(CSV), encoding="utf-8")
    (tmp_path / "tiny.toml").write_text(TOML, encoding="utf-8")
    return str(tmp_path / "tiny.csv")


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command line in this process: its exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["trimtuner", *arguments])
        with pytest.raises(SystemExit) as left:
            cli.main()
        captured = capsys.readouterr()
        return left.value.code or 0, captured.out, captured.err

    return run


def in_a_fresh_process(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_help_answers_without_loading_numpy_or_scipy():
    done = in_a_fresh_process("-X", "importtime", "-m", "trimtuner", "--help")
    assert done.returncode == 0
    assert "replay" in done.stdout
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "trimtuner.cli" in loaded
    assert not {name for name in loaded if name.split(".")[0] in ("numpy", "scipy", "sklearn")}


def test_the_help_of_a_command_names_its_options(command):
    code, out, _ = command("replay", "--help")
    assert code == 0
    for option in ("--method", "--seeds", "--trials", "--budget", "--constraint", "--jobs", "--json"):
        assert option in out


def test_the_version_is_printed(command):
    assert command("--version") == (0, f"trimtuner {__version__}\n", "")


def test_replay_as_json_says_everything_a_script_would_ask(command, tiny):
    code, out, err = command("replay", tiny, *FAST, "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["table"], answer["title"]) == ("tiny", "A <b>tiny</b> job")
    assert answer["constraints"] == ["cost <= 2"]
    assert (answer["trials"], answer["first_seed"], answer["seeds"]) == (24, 0, 2)
    assert answer["mean_full_run_usd"] == pytest.approx((1 + 2 + 3 + 4) / 4)
    (method,) = answer["methods"]
    assert method["method"] == "trimtuner-dt"
    assert [level["level"] for level in method["levels"]] == [0.90, 0.95, 0.99]
    for level in method["levels"]:
        assert (level["settled"], level["searches"]) == (2, 2)  # a whole table ends at its best configuration
        assert level["first_hit_usd"]["median"] <= level["settled_usd"]["median"]
        assert level["settled_usd"]["least"] <= level["settled_usd"]["mean"] <= level["settled_usd"]["most"]
        assert level["changes_after"]["least"] >= 0
    assert method["final_quality"] == pytest.approx(1.0)
    assert method["spent_usd"] == pytest.approx(2 * 10 * 1.6)
    assert method["ask_cpu_seconds"]["mean"] >= 0
    assert [run["seed"] for run in method["runs"]] == [0, 1]
    assert all(len(run["moments"]) == 24 for run in method["runs"])
    assert method["quality_at_runs"]["20"] == pytest.approx(1.0)  # 20 full runs of 2.5 USD: more than the whole table


def test_replay_for_people_has_a_line_for_each_level_and_no_bar_off_a_terminal(command, tiny):
    code, out, err = command("replay", tiny, *FAST)
    assert (code, err) == (0, "")
    assert out.startswith("A <b>tiny</b> job\n")
    lines = [line for line in out.splitlines() if line.startswith("trimtuner-dt")]
    assert [line.split()[1] for line in lines[:3]] == ["90%", "95%", "99%"]
    assert "\x1b" not in out
    assert "\r" not in out


def test_several_methods_and_limits_of_ones_own(command, tiny):
    code, out, _ = command(
        *("replay", tiny, "-m", "trimtuner-dt", "-m", "trimtuner-gp", "--seeds", "1", "--trials", "4"),
        *("--constraint", "cost <= 3", "--constraint", "time <= 2h", "--first-seed", "7", "--json"),
    )
    answer = json.loads(out)
    assert code == 0
    assert [method["method"] for method in answer["methods"]] == ["trimtuner-dt", "trimtuner-gp"]
    assert answer["constraints"] == ["cost <= 3", "time <= 2h"]
    assert [run["seed"] for method in answer["methods"] for run in method["runs"]] == [7, 7]


def test_a_budget_ends_each_search(command, tiny):
    _, out, _ = command("replay", tiny, *FAST, "--budget", "1", "--json")
    for run in json.loads(out)["methods"][0]["runs"]:
        assert all(moment["spent"] < 2.5 for moment in run["moments"][:-1])
        assert len(run["moments"]) < 24


def test_snapshots_can_be_asked_for_where_the_table_does_not_say(command, tiny):
    def first_fraction(*more):
        _, out, _ = command("replay", tiny, "-m", "trimtuner-dt", "--seeds", "1", "--trials", "1", "--json", *more)
        return json.loads(out)["methods"][0]["runs"][0]["moments"][0]["fraction"]

    assert first_fraction() == first_fraction("--no-snapshots") == 0.1  # one by one from the smallest
    assert first_fraction("--snapshots") == 0.5  # one run that passes the smaller ones


def test_searches_side_by_side_give_what_they_give_one_by_one(command, tiny):
    def without_clock(*more):
        _, out, _ = command("replay", tiny, "-m", "trimtuner-dt", "--seeds", "2", "--trials", "6", "--json", *more)
        runs = json.loads(out)["methods"][0]["runs"]
        return [[(m["spent"], m["quality"], m["config"]) for m in run["moments"]] for run in runs]

    assert without_clock("--jobs", "2") == without_clock()


@pytest.mark.usefixtures("tiny")
def test_tables_lists_what_can_be_replayed(command, tmp_path, monkeypatch):
    monkeypatch.setenv("TRIMTUNER_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    code, out, _ = command("tables", "--json")
    assert code == 0
    found = {table["name"]: table for table in json.loads(out)}
    assert found["tiny"] == {"name": "tiny", "title": "A <b>tiny</b> job", "configurations": 8, "fractions": 3}
    code, out, _ = command("tables")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} == set(found)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["no-such-table"], "no table 'no-such-table'"),
        (["missing.csv"], "there is no table at 'missing.csv'"),
        (["TINY", "--method", "trimtunner"], "did you mean 'trimtuner'?"),
        (["TINY", "--method", "bayes"], "method 'bayes' is none of trimtuner"),
        (["TINY", "--constraint", "cost <= 1 EUR"], "unknown unit 'EUR'"),
        (["TINY", "--constraint", "latency_ms <= 4"], "no metric 'latency_ms'"),
        (["TINY", "--constraint", "cost <= 1e-9"], "no configuration of table 'tiny' meets"),
        (["TINY", "--budget", "0"], "--budget 0 must be above 0"),
        (["TINY", "--budget", "nan"], "--budget nan must be above 0"),
    ],
)
def test_what_is_wrong_is_one_line_on_standard_error_and_exit_code_two(command, tiny, arguments, complaint):
    code, out, err = command("replay", *(tiny if word == "TINY" else word for word in arguments))
    assert code == 2
    assert out == ""
    assert err.startswith("trimtuner: ")
    assert complaint in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_a_broken_description_is_one_line_without_a_traceback(command, tiny, tmp_path):
    (tmp_path / "tiny.toml").write_text(TOML.replace("[metrics]", "[metric]"), encoding="utf-8")
    code, _, err = command("replay", tiny)
    assert code == 2
    assert "unknown key 'metric'; did you mean 'metrics'?" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["replay"], ["replya"], ["replay", "x", "--seeds", "0"], ["replay", "x", "--seeds", "two"], ["--no"]]
)
def test_a_command_line_that_cannot_be_read_ends_with_exit_code_two(command, arguments):
    code, out, err = command(*arguments)
    assert code == 2
    assert out == ""
    assert "Traceback" not in err


def test_hostile_names_come_out_as_the_text_they_are(command, tmp_path):
    hostile = "$(touch pwned) <script> {0.__class__} '; --"
    lines = [CSV[0], *(line.replace("sync", f'"{hostile}"', 1) for line in CSV[1:] if ",sync," in line), *CSV[4:7]]
    (tmp_path / "bad name;.csv").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "bad name;.toml").write_text(TOML, encoding="utf-8")
    code, out, _ = command("replay", str(tmp_path / "bad name;.csv"), *FAST, "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["table"] == "bad name;"
    modes = {m["config"]["mode"] for run in answer["methods"][0]["runs"] for m in run["moments"] if m["config"]}
    assert modes <= {hostile, "async"}
    assert not (tmp_path / "pwned").exists()


def test_the_module_is_the_same_command():
    done = in_a_fresh_process("-m", "trimtuner", "replay", "no-such-table")
    assert done.returncode == 2
    assert done.stderr.startswith("trimtuner: no table 'no-such-table'")
    assert done.stderr.count("\n") == 1


def test_methods_are_listed_one_line_each_with_their_options(command):
    code, out, _ = command("methods")
    assert code == 0
    first, *rest = out.splitlines()
    assert first.split() == ["method", "optimises", "needs", "use", "it", "for"]
    listed = [line.split()[0] for line in rest[: rest.index("")]]
    assert listed == list(METHODS)
    assert "  nephele       horizon=0, trees=5, initial_budget=(none), dropping=false" in rest
    assert max(map(len, out.splitlines())) <= 120
    code, out, _ = command("methods", "--json")
    assert [method["name"] for method in json.loads(out)] == list(METHODS)


def test_a_first_job_file_is_written_once_and_is_ready_to_run(command, tmp_path):
    path = tmp_path / "job.yaml"
    assert command("init", str(path))[0] == 0
    code, out, _ = command("validate", str(path))
    assert (code, out.splitlines()[0]) == (0, "job: ready to run")
    written = path.read_bytes()
    code, _, complaint = command("init", str(path))
    assert code == 2
    assert str(path) in complaint
    assert path.read_bytes() == written


def test_faults_of_a_job_file_begin_with_file_and_line(command, tmp_path):
    path = tmp_path / "job.yaml"
    command("init", str(path))
    text = path.read_text(encoding="utf-8").replace("goal: {maximize", "gaol: {maximize")
    path.write_text(text, encoding="utf-8")
    line = 1 + next(number for number, one in enumerate(text.splitlines()) if one.startswith("gaol"))
    for words in (["validate", str(path)], ["run", str(path)], ["status", str(path)]):
        code, _, complaint = command(*words)
        assert code == 2
        assert any(one.startswith(f"{path}:{line}: ") and "goal" in one for one in complaint.splitlines())


def test_a_job_that_cannot_run_is_said_by_the_exit_code_too(command, tmp_path):
    path = tmp_path / "job.yaml"
    command("init", str(path))
    path.write_text(path.read_text(encoding="utf-8").replace("money: 1 USD", "money: 0.001 USD"), encoding="utf-8")
    code, out, _ = command("validate", str(path), "--json")
    assert (code, json.loads(out)["is_valid"]) == (2, False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    job = write_job(tmp_path_factory.mktemp("study"), trials=2, nap=0, method="random")
    trimtuner("run", job, "-q")
    return job


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "{job}", "-o", "{folder}"], "{folder} cannot be written (Is a directory)"),
        (
            ["report", "{job}", "-o", "{folder}/none/report.html"],
            "{folder}/none/report.html cannot be written (No such file or directory)",
        ),
        (["report", "{job}", "--view", "spend", "-o", "{job}/a.svg"], "{job}/a.svg cannot be written (Not a dir"),
        (["best", "{job}", "--format", "bash", "-o", "{folder}/none/a"], "{folder}/none/a cannot be written (No such"),
        (["init", "{folder}/none/job.yaml"], "{folder}/none/job.yaml cannot be written (No such file"),
        (["schema", "-o", "{folder}"], "{folder} cannot be written (Is a directory)"),
    ],
)
def test_a_place_that_cannot_be_written_is_one_line_that_names_it(command, finished, tmp_path, words, said):
    places = {"job": finished, "folder": tmp_path}
    code, _, complaint = command(*(word.format(**places) for word in words))
    assert (code, complaint.count("\n")) == (2, 1)
    assert complaint.startswith(f"trimtuner: {said.format(**places)}")


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "make room, then give"), (errno.EROFS, "make it writable for you, or give another place")],
    ids=["full", "read-only"],
)
@pytest.mark.parametrize(
    "words",
    [
        ["init", "{folder}/a"],
        ["schema", "-o", "{folder}/a"],
        ["best", "{job}", "--format", "bash", "-o", "{folder}/a"],
        ["report", "{job}", "-o", "{folder}/a"],
        ["report", "{job}", "--view", "spend", "-o", "{folder}/a.svg"],
        ["report", "{job}", "--view", "spend", "-o", "{folder}/a.png"],
        ["catalog", "update", "--from-csv", "{prices}", "--output", "{folder}/a.csv"],
    ],
    ids=" ".join,
)
def test_a_disk_that_takes_half_a_file_is_said_in_one_line_and_nothing_is_left(
    command, finished, tmp_path, monkeypatch, words, number, advice
):
    (tmp_path / "prices").write_text("vm_type,vcpus,memory_gib,price_per_hour\na,1,1,1\n")
    places = {"job": finished, "folder": tmp_path / "disk", "prices": tmp_path / "prices"}
    places["folder"].mkdir()

    def take_half(path, _content, *_, **__):
        with open(path, "wb") as file:
            file.write(b"half")
        raise OSError(number, os.strerror(number))  # without the name, as the system tells it

    monkeypatch.setattr(Path, "write_text", take_half)
    monkeypatch.setattr(Path, "write_bytes", take_half)
    code, _, complaint = command(*(word.format(**places) for word in words))
    assert (code, complaint.count("\n")) == (2, 1)
    assert complaint.startswith(f"trimtuner: {words[-1].format(**places)} cannot be written ({os.strerror(number)}); ")
    assert advice in complaint
    assert list(places["folder"].iterdir()) == []


def test_output_that_nobody_reads_ends_the_command_in_silence():
    reading, writing = os.pipe()
    os.close(reading)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "trimtuner", "methods"]
    for buffering in ({}, {"PYTHONUNBUFFERED": "1"}):
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env={**environment, **buffering})
        assert (done.returncode, done.stderr) == (1, b"")
    os.close(writing)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_output_that_finds_no_room_is_said():
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "trimtuner", "methods"], stdout=full, stderr=subprocess.PIPE)
        unheard = subprocess.run([sys.executable, "-m", "trimtuner", "methods"], stdout=full, stderr=full)
    assert (done.returncode, unheard.returncode) == (2, 2)
    assert done.stderr.startswith(b"trimtuner: No space left on device; make room")
    assert done.stderr.count(b"\n") == 1


FULL = """
import errno, os, sys
from trimtuner.engines.supervising import files
from trimtuner.cli import main

def refuse(descriptor):
    if ".trials/" in os.readlink(f"/proc/self/fd/{descriptor}"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

files.os.fsync = refuse  # the disk of the trials' folders, not the record's
sys.argv = ["trimtuner", *sys.argv[1:]]
main()
"""


def test_a_run_that_finds_no_room_says_where_and_goes_on_when_there_is(tmp_path):
    job = write_job(tmp_path, trials=2, nap=0, method="random")
    refused = subprocess.run([sys.executable, "-c", FULL, "run", job, "-q"], capture_output=True, text=True)
    assert refused.returncode == 2
    assert re.fullmatch(r"trimtuner: \S+/0-1/launch\.json: No space left on device; make room, .*\n", refused.stderr)
    assert not starts(tmp_path)
    trimtuner("run", job, "-q")
    assert starts(tmp_path) == [0, 1]
    assert status(job)["trials"] == {"succeeded": 2, "over_limit": 0, "failed": 0, "forgotten": 0, "running": 0}
