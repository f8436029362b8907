"""A study in a record: the same study as in memory, and one that survives its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import trimtuner as tt
from trimtuner.records import RecordsView
from trimtuner.study.owners import HEARTBEAT_SECONDS
from waiting import PATIENCE_SECONDS, wait_until


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
    with pytest.raises(
        tt.InputError, match=r"another definition \(constraints\.cost: was \{'at_most': 1\.0\}, is gone\)"
    ):
        tt.Study(space(), maximize="accuracy", seed=3, storage=storage)
    with pytest.raises(tt.InputError, match=r"another definition \(method: was 'trimtuner', is 'random'\)"):
        study(storage, method="random")
    fewer = tt.Space({"x": tt.Choice([0, 1])}, cloud=space().cloud, fractions=[0.1, 1])
    with pytest.raises(
        tt.InputError, match=r"another definition \(parameters\.x\.values: was \[0, 1, 2, 3, 4\], is \[0, 1\]\)"
    ):
        tt.Study(fewer, maximize="accuracy", constraints=["cost <= 1"], seed=3, storage=storage)
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


def test_a_forgotten_failure_is_forgotten_in_a_record_as_in_memory_and_the_search_goes_on_the_same(storage):
    kept, free = study(storage, stop=tt.AfterTrials(4)), study(None, stop=tt.AfterTrials(4))
    for one in (kept, free):
        for _ in range(2):
            one.tell(one.ask(), failed="exit", time=10.0)
        first, second = (outcome.trial for outcome in one.history.outcomes)
        one.forget(first)
        one.forget(second.number)
        assert one.spent == pytest.approx(2 * 10.0 * 0.36 / 3600)
    assert kept.history == free.history
    for number in range(2, 6):
        trial, other = kept.ask(), free.ask()
        assert (trial, trial.number) == (other, number)
        for one in (kept, free):
            one.tell(trial, **measure(trial.config, trial.fraction))
    for one in (kept, study(storage, stop=tt.AfterTrials(4)), free):
        with pytest.raises(tt.SearchOver, match="4 of 4 trials are made"):
            one.ask()


def test_what_cannot_be_forgotten_is_said(storage):
    for one in (study(storage), study(None)):
        one.tell(one.ask(), accuracy=0.5, time=1.0)
        one.tell(one.ask(), failed="exit", time=1.0)
        running = one.ask()
        one.forget(1)
        for what, says in ((0, "succeeded"), (1, "forgotten already"), (running, "is running"), (9, "no trial 9")):
            with pytest.raises(tt.InputError, match=says):
                one.forget(what)
        for what in (True, "1", None, 1.0):
            with pytest.raises(tt.InputError, match="a trial or its number"):
                one.forget(what)


@pytest.mark.parametrize("kept", ["in memory", "in a record"])
def test_threads_that_choose_at_the_same_moment_are_handed_different_trials(kept, tmp_path, monkeypatch):
    """Four threads have all chosen before the first of them can write its trial down."""
    shared = study(None if kept == "in memory" else tmp_path / "a.db", method="random")
    all_have_chosen, has_waited = threading.Barrier(4), threading.local()
    claim_alone = shared._memory.claim

    def claim_when_all_have_chosen(trial: tt.Trial) -> bool:
        if not hasattr(has_waited, "yes"):
            has_waited.yes = True
            all_have_chosen.wait(PATIENCE_SECONDS)
        return claim_alone(trial)

    monkeypatch.setattr(shared._memory, "claim", claim_when_all_have_chosen)
    with ThreadPoolExecutor(4) as threads:
        trials = [future.result() for future in [threads.submit(shared.ask) for _ in range(4)]]
    assert sorted(trial.number for trial in trials) == [0, 1, 2, 3]
    assert len({(trial.config["x"], trial.fraction) for trial in trials}) == 4
    assert sorted(shared.history.pending, key=lambda trial: trial.number) == sorted(trials, key=lambda t: t.number)


@pytest.mark.parametrize("kept", ["in memory", "in a record"])
def test_what_threads_measure_on_one_study_is_there_once_and_whole(kept, tmp_path):
    """Five configurations on all of the data, and four threads that would like four each: each is measured once."""
    shared = study(None if kept == "in memory" else tmp_path / "a.db", method="random", budget=1.0)
    with ThreadPoolExecutor(4) as threads:
        for future in [threads.submit(shared.optimize, measure, 4) for _ in range(4)]:
            future.result()
    outcomes = shared.history.outcomes
    assert sorted(outcome.trial.number for outcome in outcomes) == list(range(5))
    assert {outcome.trial.config["x"] for outcome in outcomes} == {0, 1, 2, 3, 4}
    assert not shared.history.pending
    assert shared.spent == pytest.approx(5 * 2 * 0.36 / 3600)
    assert shared.recommend().config["x"] == 2


def test_of_threads_that_tell_the_same_trial_one_is_heard(monkeypatch):
    shared = study(None)
    trial = shared.ask()
    all_have_looked = threading.Barrier(4)
    look = shared._own

    def look_together(trial: tt.Trial) -> tt.Trial:
        own = look(trial)
        all_have_looked.wait(PATIENCE_SECONDS)
        return own

    monkeypatch.setattr(shared, "_own", look_together)
    with ThreadPoolExecutor(4) as threads:
        told = [threads.submit(shared.tell, trial, accuracy=0.5, time=1.0) for _ in range(4)]
    refused = [one.exception() for one in told if one.exception() is not None]
    assert len(refused) == 3
    assert all("told already" in str(error) for error in refused)
    assert len(shared.history.outcomes) == 1
