"""A study in a record: the same study as in memory, and one that survives its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import trimtuner as tt
from trimtuner.records import RecordsView
from trimtuner.session.owners import HEARTBEAT_SECONDS
from waiting import wait_until


def space() -> tt.Space:
    machines = {"small": tt.VM(vcpus=1, memory_gib=2, price_per_hour=0.36)}
    return tt.Space({"x": tt.Choice([0, 1, 2, 3, 4])}, cloud=tt.Cloud(machines), fractions=[0.1, 1])


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """Where a study is kept, in one store or the other."""
    return tmp_path / "a.db" if request.param == "sqlite" else request.getfixturevalue("postgres_address")


def study(storage: str | Path | None, **settings: object) -> tt.Study:
    return tt.Study(space(), maximize="accuracy", constraints=["cost <= 1"], seed=3, storage=storage, **settings)


def measure(config: dict, fraction: float) -> dict[str, float]:
    return {"accuracy": (1 - 0.1 * abs(config["x"] - 2)) * fraction**0.1, "time": 1.0 + fraction}


def test_a_study_in_a_record_asks_and_remembers_exactly_as_one_in_memory(storage):
    kept, free = study(storage), study(None)
    for _ in range(6):
        trial, other = kept.ask(), free.ask()
        assert trial == other
        for one, asked in ((kept, trial), (free, other)):
            one.tell(asked, **measure(asked.config, asked.fraction))
        assert kept.history == free.history
    assert kept.recommend() == free.recommend()


def test_opened_again_it_goes_on_where_it_was(storage):
    whole = study(None)
    for number in range(6):
        part = study(storage)  # each trial by a study of its own
        assert len(part.history.outcomes) == number
        trial, expected = part.ask(), whole.ask()
        assert trial == expected
        for one in (part, whole):
            one.tell(trial, **measure(trial.config, trial.fraction))


def test_another_problem_method_or_seed_is_another_study(storage):
    study(storage)
    with pytest.raises(tt.InputError, match="another definition"):
        tt.Study(space(), maximize="accuracy", seed=3, storage=storage)
    with pytest.raises(tt.InputError, match="another definition"):
        study(storage, method="random")
    assert study(storage, method="random", name="control").history == tt.History()


def test_what_a_trial_may_cost_at_worst_is_reserved_and_the_budget_is_kept(storage):
    """Ten hours at 0.36 USD are 3.6: two fit into 8, a third does not."""
    limited = study(storage, timeout="10h", budget=8.0)
    first = limited.ask()
    limited.ask()
    with pytest.raises(tt.SearchOver, match="covers no trial"):
        limited.ask()
    limited.tell(first, **measure(first.config, first.fraction))
    assert limited.ask().number == 2


def test_the_history_of_a_record_cannot_be_exchanged(storage):
    kept = study(storage)
    with pytest.raises(tt.InputError, match="cannot be replaced"):
        kept.history = tt.History()


LOOP = """
import sys, time
sys.path[:0] = {folders!r}
from pathlib import Path
from test_storage import study

def train(config, fraction):
    Path(sys.argv[2]).touch()
    time.sleep(60)

study(sys.argv[1]).optimize(train, trials=3)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are told apart as Linux does")
def test_a_trial_whose_process_was_killed_is_closed_and_charged_by_the_next_one(storage, tmp_path):
    begun = tmp_path / "begun"
    script = tmp_path / "loop.py"
    script.write_text(LOOP.format(folders=[str(Path(__file__).parent), str(Path(__file__).parents[1])]))
    began = time.time()
    process = subprocess.Popen([sys.executable, str(script), str(storage), str(begun)])
    wait_until(begun.exists)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    study(storage).optimize(measure, trials=2)
    with RecordsView(storage) as view:
        history = view.open("study").history()
    lost, *others = sorted(history.outcomes, key=lambda outcome: outcome.trial.number)
    assert lost.failed == "preempted"
    assert 0 < lost.cost <= 0.36 * (time.time() - began + HEARTBEAT_SECONDS) / 3600
    assert [outcome.failed for outcome in others] == [None, None]
    assert not history.pending
