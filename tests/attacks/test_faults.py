"""Random faults under real runs, a few here and a thousand in the soak; and that their judge would notice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from checking import accuracy_of, broken_promises, broken_promises_at_rest, processes_of

from trimtuner.problem.history import Measurement, Outcome, Trial
from trimtuner.records import Record, Records
from trimtuner.study.owners import this_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local engine needs Linux")

PROGRAM = Path(__file__).with_name("faults.py")
CONFIG = {"x": 0.2, "y": 1, "nap": 0.3, "vm_type": "large"}  # 2 USD a second
BUDGET_USD = 10.0


def inject(folder: Path, *words: str) -> None:
    """In a process of its own, which has a small disk of its own to fill."""
    done = subprocess.run([sys.executable, PROGRAM, "--folder", folder, *words], capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_few_faults_break_no_promise(tmp_path: Path) -> None:
    inject(tmp_path, "--faults", "15", "--seed", "5", "--money", "40")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_thousand_faults_break_no_promise(tmp_path: Path) -> None:
    inject(tmp_path, "--faults", "1000", "--seed", "1")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("postgres_server")
def test_faults_break_no_promise_with_the_record_on_a_server_that_crashes(tmp_path: Path) -> None:
    inject(tmp_path, "--faults", "200", "--seed", "1", "--postgres")


class Told:
    """A record of one trial that ran from second 100 to 101 and was charged for it, and its side log."""

    def __init__(self, folder: Path) -> None:
        self.record: Record = Records(folder / "a.db").create_or_open("a", {}, BUDGET_USD)
        self.me = this_process()
        self.record.register(self.me)
        self.side_log = folder / "side.log"
        self.side_log.write_text("start 0 1 7 100.0\nbeat 0 1 7 101.0\n")

    def tell(self, number: int, cost: float, accuracy: float, fraction: float = 1.0, reserve: float = 3.0) -> None:
        trial = Trial(number, {**CONFIG, "x": CONFIG["x"] + number}, fraction)
        self.record.claim(trial, reserve, self.me.id)
        metrics = {"accuracy": accuracy, "time": cost / 2, "cost": cost}
        outcome = Outcome(trial, (Measurement(trial.config, fraction, metrics),), None, cost, cost / 2)
        self.record.finish(outcome, 1, cost)

    def broken(self) -> list[str]:
        return broken_promises_at_rest(self.record, self.side_log)


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_the_judge_finds_nothing_where_all_is_well(told: Told) -> None:
    told.tell(0, 2.0, accuracy_of(CONFIG, 1.0))
    assert told.broken() == []


def test_the_judge_notices_what_was_charged_too_little(told: Told) -> None:
    told.tell(0, 1.9, accuracy_of(CONFIG, 1.0))
    assert ["charged 1.900000 USD, and ran 1.000 s at 2 USD/s" in one for one in told.broken()] == [True]


def test_the_judge_notices_a_second_start_and_a_start_that_nobody_knows(told: Told) -> None:
    told.tell(0, 8.0, accuracy_of(CONFIG, 1.0), reserve=9.0)
    told.side_log.write_text(told.side_log.read_text() + "start 0 1 8 102.0\nstart 5 1 9 103.0\n")
    first, second = told.broken()
    assert "0-1 was started 2 times" in first
    assert "5-1 ran, and the record does not know it" in second


def test_the_judge_notices_another_measurement_than_the_trials(told: Told) -> None:
    told.tell(0, 2.0, accuracy_of(CONFIG, 0.5))
    assert ["has accuracy" in one for one in told.broken()] == [True]


def test_the_judge_notices_a_budget_that_is_passed_and_money_that_stays_reserved(told: Told) -> None:
    told.tell(0, 9.0, accuracy_of(CONFIG, 1.0), reserve=3.0)
    assert told.broken() == []
    told.record.claim(Trial(1, CONFIG, 0.5), 1.0, told.me.id)
    assert broken_promises(told.record, told.side_log) == []
    assert ["still reserved" in one for one in told.broken()] == [True]
    outcome = Outcome(Trial(1, CONFIG, 0.5), (), "exit", 2.0, 1.0)
    told.record.finish(outcome, 1, 2.0)
    assert ["pass the budget" in one for one in told.broken()] == [True]


def test_the_judge_sees_what_runs_with_a_folder_in_its_words(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()", tmp_path], stdin=subprocess.PIPE)
    with process:
        assert list(processes_of(tmp_path)) == [process.pid]
        process.communicate(b"\n")
    assert processes_of(tmp_path) == {}
