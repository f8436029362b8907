"""What a user of Optuna tries first: the best so far, trials as a table, a queue, a loop in threads, a larger space."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import trimtuner as tt
from trimtuner.records import Records, RecordsView
from trimtuner.records.restoring import restore, soundness_of
from waiting import PATIENCE_SECONDS


def space(**parameters: object) -> tt.Space:
    return tt.Space({"rate": tt.Choice([0.1, 0.2, 0.3]), **parameters}, fractions=[0.25, 1])


def study(of: tt.Space | None = None, **settings: object) -> tt.Study:
    return tt.Study(of or space(), maximize="accuracy", **{"seed": 3, **settings})


def train(config: dict, fraction: float) -> dict[str, float]:
    return {"accuracy": config["rate"] + 0.1 * fraction, "time": 1.0 + fraction}


@pytest.fixture(params=["memory", "sqlite"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return None if request.param == "memory" else tmp_path / "a.db"


# --- the best so far, and all trials --------------------------------------------------------------------------------


def test_the_best_is_what_is_recommended(storage):
    one = study(storage=storage)
    one.optimize(train, trials=6)  # all there is: every rate at both fractions
    assert one.best_config == {"rate": 0.3} == one.recommend().config
    assert one.best_value == pytest.approx(0.4)  # 0.3 + 0.1 on all of the data
    assert one.best_value.low == one.best_value.high  # measured


def test_without_a_measurement_there_is_no_best():
    with pytest.raises(tt.NoAnswer):
        _ = study().best_config


def test_trials_say_how_each_of_them_went(storage):
    one = study(storage=storage)
    first, second, third = one.ask(), one.ask(), one.ask()
    one.tell(second, failed="oom", time=1.0)
    one.tell(first, **train(first.config, first.fraction))
    assert [(trial.number, trial.state) for trial in one.trials] == [(0, "ok"), (1, "oom"), (2, "running")]
    assert one.trials[0].config == first.config
    assert one.trials[0].metrics["accuracy"] == train(first.config, first.fraction)["accuracy"]
    assert one.trials[2].config == third.config


def test_a_data_frame_has_a_row_for_each_trial_and_a_column_for_each_parameter_and_metric(storage):
    one = study(storage=storage)
    one.optimize(train, trials=3)
    one.tell(one.ask(), failed="oom", time=1.0)
    frame = one.to_dataframe()
    assert list(frame["trial"]) == [0, 1, 2, 3]
    assert list(frame["state"]) == ["ok"] * 3 + ["oom"]
    for _, row in frame[frame.state == "ok"].iterrows():
        assert row.metric_accuracy == pytest.approx(row.config_rate + 0.1 * row.fraction)
        assert row.time == 1.0 + row.fraction
    assert frame.metric_accuracy.isna().tolist() == [False] * 3 + [True]


def test_without_pandas_a_data_frame_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(tt.InputError, match="pip install pandas"):
        study().to_dataframe()


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("best_params", "best_config"), ("trials_dataframe", "to_dataframe()"), ("best_confg", "'best_config'")],
)
def test_a_word_of_another_library_is_answered_with_ours(theirs, ours):
    with pytest.raises(AttributeError, match=f"no '{theirs}'") as caught:
        getattr(study(), theirs)
    assert ours in str(caught.value)


def test_what_is_printed_can_be_read(tmp_path):
    one = study(space(depth=tt.Choice([None, 4]), layers=tt.Choice([(8,), (8, 8)])), storage=tmp_path / "a.db")
    one.enqueue({"rate": 0.1, "depth": None, "layers": (8,)}, 0.25)
    trial = one.ask()
    assert repr(trial) == "Trial(0, {'rate': 0.1, 'depth': None, 'layers': (8,)}, fraction=0.25)"
    assert repr(one.problem.space) == (
        "Space({'rate': Choice([0.1, 0.2, 0.3]), 'depth': Choice([None, 4]), 'layers': Choice([(8,), (8, 8)])}, "
        "fractions=[0.25, 1])"
    )
    assert repr(tt.Float(0.1, 10.0, "log", when="depth == 4", default=1.0)) == (
        "Float(0.1, 10.0, scale='log', when='depth == 4', default=1.0)"
    )
    one.tell(trial, accuracy=0.5, time=1.0)
    assert "'study': maximize accuracy" in repr(one)
    assert "1 trials" in repr(one)
    assert "a.db" in repr(one)
    assert repr(one.recommend()).startswith("Recommendation({'rate': ")


# --- failures that cost nothing --------------------------------------------------------------------------------------


def test_a_failure_needs_no_time_where_nothing_is_charged(storage):
    one = study(storage=storage)
    trial = one.ask()
    one.tell(trial, failed="oom")
    assert [outcome.time for outcome in one.history.failures] == [None]
    assert one.ask().config | {} != trial.config or one.ask().fraction != trial.fraction  # learnt: not asked again


@pytest.mark.parametrize("charged", ["prices", "budget"])
def test_a_failure_needs_its_time_where_it_is_charged(charged):
    configs = [{"rate": 0.1}, {"rate": 0.2}]
    if charged == "prices":
        one = tt.Study(tt.Space.from_configs(configs, price_per_hour=[1.0, 1.0]), maximize="accuracy")
    else:
        one = tt.Study(tt.Space.from_configs(configs), maximize="accuracy", budget=1.0)
    with pytest.raises(tt.InputError, match="neither time"):
        one.tell(one.ask(), failed="oom")


# --- a queue --------------------------------------------------------------------------------------------------------


def test_what_is_enqueued_is_asked_next_in_its_order_and_once(storage):
    one = study(storage=storage)
    wanted = [({"rate": 0.3}, 1.0), ({"rate": 0.2}, 0.25)]
    for config, fraction in wanted:
        one.enqueue(config, fraction)
    asked = [one.ask(), one.ask()]
    assert [(trial.config, trial.fraction) for trial in asked] == wanted
    assert [trial.origin for trial in asked] == ["user", "user"]
    assert one.ask().origin == "design"
    assert one.history.queued == ()


def test_a_queue_in_a_record_is_of_every_process_that_opens_it(tmp_path):
    study(storage=tmp_path / "a.db").enqueue({"rate": 0.2})
    other = study(storage=tmp_path / "a.db")
    assert other.history.queued == (({"rate": 0.2}, 1.0),)
    trial = other.ask()
    assert (trial.config, trial.fraction) == ({"rate": 0.2}, 1.0)
    assert study(storage=tmp_path / "a.db").history.queued == ()


def test_a_queue_survives_the_loss_of_its_record(tmp_path):
    one = study(storage=tmp_path / "a.db")
    for rate in (0.3, 0.2):
        one.enqueue({"rate": rate})
    one.tell(one.ask(), accuracy=0.5, time=1.0)
    del one
    for end in ("", "-wal", "-shm"):
        (tmp_path / f"a.db{end}").unlink(missing_ok=True)
    restore(tmp_path / "a.db")
    assert study(storage=tmp_path / "a.db").ask().config == {"rate": 0.2}


@pytest.mark.parametrize(
    ("config", "fraction", "complaint"),
    [
        ({"rate": 0.15}, 1.0, "0.15 is not one of"),
        ({"rat": 0.1}, 1.0, "did you mean 'rate'"),
        ({"rate": 0.1}, 0.5, "none of those offered"),
        ({"rate": 0.2}, 1.0, "waits already"),
        ({"rate": 0.3}, 1.0, "is tested already"),
        (3, 1.0, "a configuration, a dict"),
    ],
)
def test_what_cannot_be_asked_is_not_enqueued(storage, config, fraction, complaint):
    one = study(storage=storage)
    one.enqueue({"rate": 0.3}, 1.0)
    one.tell(one.ask(), accuracy=0.5, time=1.0)
    one.enqueue({"rate": 0.2}, 1.0)
    with pytest.raises(tt.InputError, match=complaint):
        one.enqueue(config, fraction)


def test_a_point_of_a_range_can_be_enqueued():
    one = study(tt.Space({"x": tt.Float(0.0, 1.0), "n": tt.Int(1, 10**6)}))
    one.enqueue({"x": 0.123, "n": 77})
    assert one.ask().config == {"x": 0.123, "n": 77}
    one.tell(one.ask(), accuracy=0.2, time=1.0)
    assert one.ask().origin != "user"


def test_what_the_budget_does_not_cover_waits():
    machines = {"cheap": tt.VM(1, 1, price_per_hour=1.0), "dear": tt.VM(2, 2, price_per_hour=100.0)}
    dear = tt.Space({}, cloud=tt.Cloud(machines))
    one = tt.Study(dear, maximize="accuracy", budget=2.0, timeout=3600.0)
    one.enqueue({"vm_type": "dear", "vm_count": 1})
    assert one.ask().config["vm_type"] == "cheap"
    assert len(one.history.queued) == 1


# --- None and tuples ------------------------------------------------------------------------------------------------


def test_none_and_tuples_are_values_as_any_other(storage):
    offered = tt.Space(
        {"depth": tt.Choice([8, None]), "layers": tt.Choice([(32,), (64, 64), ()]), "bag": tt.Choice([None, True])},
        fractions=[0.5, 1],
    )

    def measure(config: dict, fraction: float) -> dict[str, float]:
        worth = 0.3 * (config["depth"] is None) + 0.2 * (config["layers"] == (64, 64)) + 0.1 * (config["bag"] is True)
        return {"accuracy": worth + 0.1 * fraction, "time": fraction}

    one = study(offered, storage=storage)
    one.optimize(measure, trials=24)
    assert one.best_config == {"depth": None, "layers": (64, 64), "bag": True}
    if storage is not None:
        again = study(offered, storage=storage)
        assert again.history == one.history
        assert again.recommend() == one.recommend()


def test_a_number_beside_none_keeps_its_order():
    pool = tt.Space({"depth": tt.Choice([1, 2, 9, None])}).pool()
    one, two, nine, none = pool.rows
    assert [row[0] for row in (one, two, nine)] == [0.0, 1 / 8, 1.0]
    assert none[1] == 1.0  # apart from every number
    assert one[1] == two[1] == nine[1] == 0.0


def test_a_condition_may_ask_for_none():
    offered = tt.Space({"depth": tt.Choice([None, 4]), "leaf": tt.Choice([1, 2], when="depth != None")})
    configs = [offered.pool().configuration(position) for position in range(len(offered.pool()))]
    assert {"depth": None} in configs
    assert [config for config in configs if config["depth"] == 4] == [{"depth": 4, "leaf": 1}, {"depth": 4, "leaf": 2}]


# --- a space that grows ---------------------------------------------------------------------------------------------


def test_a_space_that_grows_keeps_what_was_measured_and_asks_for_what_is_new(storage):
    one = study(storage=storage)
    one.optimize(train, trials=6)
    with pytest.raises(tt.SearchOver):
        one.ask()
    larger = tt.Space(
        {"rate": tt.Choice([0.05, 0.1, 0.2, 0.3]), "depth": tt.Choice([None, 4], default=4)}, fractions=[0.25, 1]
    )
    one.grow(larger)
    assert {m.configuration["depth"] for m in one.history.measurements} == {4}
    assert sorted(m.configuration["rate"] for m in one.history.measurements) == [0.1, 0.1, 0.2, 0.2, 0.3, 0.3]
    before = {(m.configuration["rate"], m.configuration["depth"], m.fraction) for m in one.history.measurements}
    one.optimize(train)
    new = {(row.config["rate"], row.config["depth"], row.fraction) for row in one.trials[6:]}
    assert len(new) == 16 - 6  # four rates, two depths, two fractions
    assert not before & new


def test_a_record_opened_with_more_says_what_was_added(tmp_path):
    place = tmp_path / "a.db"
    study(storage=place).optimize(train, trials=4)
    reader = RecordsView(place).open("study")
    before = reader.history()
    one = study(space(depth=tt.Int(1, 9, default=3)), storage=place)
    assert all(trial.config["depth"] == 3 for trial in one.trials)
    events = [event for event in one.state().record.events() if event.kind == "grown"]
    assert len(events) == 1
    assert "parameters.depth: is new" in events[0].detail["added"][0]
    after = reader.history()  # whoever looked on before sees the same
    assert [o.trial.config for o in after.outcomes] == [{**o.trial.config, "depth": 3} for o in before.outcomes]
    measured = one.history.measurements[0]
    with pytest.raises(tt.InputError, match="is tested at this fraction already"):
        Records(place).open("study").enqueue(measured.configuration, measured.fraction)
    assert soundness_of(place).is_sound
    grown = study(space(depth=tt.Int(1, 9)), storage=place).history  # the default has done its work
    assert grown == one.history
    for end in ("", "-wal", "-shm"):
        (tmp_path / f"a.db{end}").unlink(missing_ok=True)
    restore(place)
    assert study(space(depth=tt.Int(1, 9)), storage=place).history == grown


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        (space(depth=tt.Int(1, 9)), "parameters.depth: is new; give it a default"),
        (tt.Space({"rate": tt.Choice([0.1, 0.2])}, fractions=[0.25, 1]), "parameters.rate.values: was"),
        (tt.Space({"rate": tt.Choice([0.3, 0.2, 0.1, 0.4])}, fractions=[0.25, 1]), "parameters.rate.values: was"),
        (tt.Space({"rate": tt.Choice([0.1, 0.2, 0.3])}, fractions=[1]), "fractions: was"),
    ],
)
def test_a_space_that_does_more_than_grow_is_refused(storage, other, complaint):
    one = study(storage=storage)
    with pytest.raises(tt.InputError, match=complaint):
        one.grow(other)
    if storage is not None:
        with pytest.raises(tt.InputError, match=complaint):
            study(other, storage=storage)


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (tt.Float(0.1, 1.0), tt.Float(0.01, 2.0)),
        (tt.Int(1, 5), tt.Int(1, 500)),
        (tt.Choice(["a", "b"]), tt.Choice(["a", "c", "b", None])),
        (tt.Choice([1, 2]), tt.Choice([1, 2, None])),
    ],
)
def test_ranges_and_lists_of_names_grow_too(tmp_path, small, large):
    first = study(tt.Space({"x": small}), storage=tmp_path / "a.db")
    trial = first.ask()
    first.tell(trial, accuracy=0.5, time=1.0)
    second = study(tt.Space({"x": large}), storage=tmp_path / "a.db")
    assert [m.configuration for m in second.history.measurements] == [trial.config]
    second.tell(second.ask(), accuracy=0.6, time=1.0)


def test_machines_grow_too(tmp_path):
    def offered(*names: str) -> tt.Space:
        return tt.Space({}, cloud=tt.Cloud({name: tt.VM(len(name), 1, price_per_hour=len(name)) for name in names}))

    first = study(offered("a", "bb"), storage=tmp_path / "a.db")
    first.tell(first.ask(), accuracy=0.5, time=1.0)
    second = study(offered("a", "bb", "ccc"), storage=tmp_path / "a.db")
    second.enqueue({"vm_type": "ccc", "vm_count": 1})
    second.tell(second.ask(), accuracy=0.9, time=1.0)
    with pytest.raises(tt.InputError, match="price_per_hour"):
        study(offered("a", "bb"), storage=tmp_path / "a.db")


def test_a_space_does_not_grow_under_trials_that_run_or_wait(storage):
    one = study(storage=storage)
    trial = one.ask()
    larger = space(depth=tt.Choice([1, 2], default=1))
    with pytest.raises(tt.InputError, match="trial 0 is under way"):
        one.grow(larger)
    one.tell(trial, accuracy=0.5, time=1.0)
    one.enqueue({"rate": 0.2}, 1.0)
    with pytest.raises(tt.InputError, match="1 enqueued trials wait"):
        one.grow(larger)
    one.tell(one.ask(), accuracy=0.5, time=1.0)
    one.grow(larger)
    assert one.ask().config.keys() == {"rate", "depth"}


def test_whoever_opened_the_smaller_space_asks_no_more_in_it(tmp_path):
    old, new = study(storage=tmp_path / "a.db"), None
    new = study(space(depth=tt.Choice([1, 2], default=1)), storage=tmp_path / "a.db")
    with pytest.raises(tt.InputError, match="open it again"):
        old.ask()
    assert new.ask().number == 0


def test_a_parameter_that_counts_only_sometimes_is_added_where_it_counts():
    one = study(tt.Space({"kind": tt.Choice(["a", "b"])}))
    for trial in (one.ask(), one.ask()):
        one.tell(trial, accuracy=0.5, time=1.0)
    one.grow(tt.Space({"kind": tt.Choice(["a", "b"]), "x": tt.Float(0.0, 1.0, when="kind == 'a'", default=0.5)}))
    assert sorted(map(str, (m.configuration for m in one.history.measurements))) == [
        "{'kind': 'a', 'x': 0.5}",
        "{'kind': 'b'}",
    ]


# --- threads --------------------------------------------------------------------------------------------------------


def test_threads_that_ask_tell_enqueue_and_forget_lose_nothing():
    one = study(tt.Space({"x": tt.Choice(list(range(40)))}, fractions=[0.25, 1]), method="random")
    start = threading.Barrier(4)

    def work(number: int) -> None:
        start.wait()
        for step in range(number, number + 8):
            trial = one.ask()
            if step % 2:
                one.tell(trial, accuracy=0.5, time=1.0)
            else:
                one.tell(trial, failed="exit")
                one.forget(trial)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    numbers = sorted(outcome.trial.number for outcome in one.history.outcomes)
    assert numbers == list(range(32))
    assert sum(outcome.is_forgotten for outcome in one.history.outcomes) == 16


# --- the loop -------------------------------------------------------------------------------------------------------


def test_as_many_trials_run_at_once_as_there_are_jobs(storage):
    together = threading.Barrier(3)

    def measure(config: dict, fraction: float) -> dict[str, float]:
        together.wait(PATIENCE_SECONDS)  # which a trial that runs alone does not pass
        return train(config, fraction)

    one = study(storage=storage)
    assert one.optimize(measure, n_jobs=3) == one.recommend()
    assert [(row.number, row.state) for row in one.trials] == [(number, "ok") for number in range(6)]


def test_no_more_trials_are_asked_than_are_wanted_however_many_run_at_once():
    one = study()
    one.optimize(train, trials=3, n_jobs=2)
    assert len(one.history.outcomes) == 3
    assert not one.history.pending


def test_when_the_time_is_up_no_more_is_asked_and_what_runs_is_told():
    one = study(tt.Space({"x": tt.Float(0.0, 1.0)}))
    begun = threading.Event()

    def measure(config: dict, fraction: float) -> dict[str, float]:
        begun.wait(0.2)  # longer than the time-out
        return {"accuracy": config["x"] * fraction}

    one.optimize(measure, timeout=0.1)
    assert len(one.history.outcomes) == 1


def test_a_search_that_nothing_ends_is_refused():
    with pytest.raises(tt.InputError, match="nothing ends this search"):
        study(tt.Space({"x": tt.Float(0.0, 1.0)}), method="random").optimize(train)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callbacks_hear_of_each_trial_when_it_has_ended_and_may_end_the_loop(n_jobs):
    one, heard = study(), []

    def enough(of: tt.Study, trial: object) -> None:
        heard.append(trial.number)
        assert of is one
        assert trial.state == "ok"
        if len(heard) == 2:
            raise tt.SearchOver("good enough")

    one.optimize(train, trials=6, n_jobs=n_jobs, callbacks=[enough])
    assert len(heard) == 2
    assert len(one.history.outcomes) in (2, 2 + n_jobs - 1)  # what ran beside the last one ran to its end
    assert not one.history.pending


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_function_that_always_raises_passes_its_error_on_and_nothing_stays_behind(n_jobs):
    one = study()

    def broken(config: dict, fraction: float) -> dict[str, float]:
        raise ZeroDivisionError(f"{config} {fraction}")

    with pytest.raises(ZeroDivisionError):
        one.optimize(broken, trials=6, n_jobs=n_jobs)
    assert not one.history.pending
    assert one.history.failures == ()  # forgotten: it was the function


def test_progress_is_a_line_for_each_trial(capsys):
    study().optimize(train, trials=2, show_progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["trial 1 of 2", "trial 2 of 2"]
    assert all("accuracy 0." in line and "rate=0." in line for line in lines)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"trials": 0}, "trials=0"),
        ({"timeout": -1}, "time-out -1"),
        ({"timeout": "soon"}, "time-out 'soon'"),
    ],
)
def test_a_loop_that_makes_no_sense_is_refused(settings, complaint):
    with pytest.raises(tt.InputError, match=complaint):
        study().optimize(train, **settings)
