"""Replay: a search against a table, scored by what it cost until the recommendation was good for good."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trimtuner as tt
from trimtuner.decisions.designs import AcrossFractions
from trimtuner.engines.protocol import Launch
from trimtuner.engines.replay.engine import ReplayEngine
from trimtuner.engines.replay.script import scripts_of
from trimtuner.engines.table import Table
from trimtuner.problem.problem import Problem
from trimtuner.study.description import Description
from trimtuner.study.driver import Driver
from trimtuner.study.memory import InMemory, Recorded
from trimtuner.study.replay import LEVELS, ReplayMoment, ReplayRun, replay, tell_from_table
from trimtuner.study.study import Study
from trimtuner.tuning.recipes import recipe_named

DESCRIPTION = {
    "configuration": {"size": "size", "mode": "mode"},
    "fraction": {"column": "rows", "full": 1000},
    "metrics": {"accuracy": "acc", "time": "seconds"},
    "price_per_hour": {"column": "usd"},
    "problem": {"maximize": "accuracy", "constraints": ["cost <= 2"]},
}


def accuracy(size, mode, fraction):
    return (0.5 + 0.1 * size + 0.03 * (mode == "async")) * fraction**0.1


def table(**changes):
    """Sizes 1 to 4 in two modes at three fractions; an hour at full data, so that the cost in USD is the size."""
    rows = [
        {
            "size": str(size),
            "mode": mode,
            "rows": str(rows),
            "acc": repr(accuracy(size, mode, rows / 1000)),
            "seconds": repr(3.6 * rows),
            "usd": str(size),
            "failed": "oom" if size == 4 else "",
        }
        for size in (1, 2, 3, 4)
        for mode in ("sync", "async")
        for rows in (100, 500, 1000)
    ]
    return Table.read("tiny", rows, {**DESCRIPTION, **changes})


def run_of(*states):
    """A run from (USD spent, quality, name of the recommended configuration)."""
    return ReplayRun(
        0,
        tuple(ReplayMoment(usd, quality, {"a": name}, 1.0, 1.0, 0.0, 0.01, 1.0, True) for usd, quality, name in states),
    )


STORY = run_of((1, 0.5, "x"), (2, 0.92, "y"), (3, 0.8, "x"), (4, 0.91, "y"), (6, 0.96, "z"), (9, 0.93, "y"))


def test_the_first_hit_is_when_the_recommendation_first_was_that_good():
    assert STORY.first_hit(0.90) == 2
    assert STORY.first_hit(0.95) == 6
    assert STORY.first_hit(0.99) is None
    assert STORY.first_hit(0.50) == 1


def test_a_search_is_settled_when_the_recommendation_is_that_good_and_stays_so():
    assert STORY.settled(0.90) == 4
    assert STORY.settled(0.95) is None  # good at 6 USD, but not to the end
    assert STORY.settled(0.80) == 2
    assert STORY.settled(0.50) == 1


def test_changes_are_counted_from_the_moment_of_settling():
    assert STORY.changes_after(0.90) == 2  # y to z to y
    assert STORY.changes_after(0.80) == 4
    assert STORY.changes_after(0.95) is None


def test_the_quality_at_a_sum_is_that_of_the_last_recommendation_paid_for():
    assert STORY.quality_at(0.5) == 0.0
    assert STORY.quality_at(1) == 0.5
    assert STORY.quality_at(3.99) == 0.8
    assert STORY.quality_at(100) == 0.93


def test_a_search_good_from_its_first_trial_is_settled_at_its_price():
    run = run_of((0.25, 1.0, "x"), (0.5, 1.0, "x"))
    assert [run.settled(level) for level in LEVELS] == [0.25] * 3
    assert run.changes_after(0.99) == 0


def test_a_run_without_trials_never_settles():
    assert ReplayRun(0, ()).settled(0.9) is None
    assert ReplayRun(0, ()).first_hit(0.9) is None
    assert ReplayRun(0, ()).quality_at(1.0) == 0.0


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from("xyz")), min_size=1, max_size=12), st.floats(0, 1))
def test_a_search_never_settles_before_its_first_hit(states, level):
    run = run_of(*((1.0 + number, quality, name) for number, (quality, name) in enumerate(states)))
    settled, first = run.settled(level), run.first_hit(level)
    assert (settled is not None) == (states[-1][0] >= level)
    if settled is not None:
        assert first <= settled
        assert run.quality_at(settled) >= level
        assert 0 <= run.changes_after(level) < len(states)


# --- against a table --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["trimtuner", "trimtuner-gp", "trimtuner-dt"])
def test_a_search_of_a_whole_table_ends_at_its_best_feasible_configuration(method):
    run = replay(table(), method, seed=1, trials=100)
    assert len(run.moments) == 8 * 3
    last = run.moments[-1]
    assert last.config == {"size": 2, "mode": "async"}  # size 3 costs 3 USD, which is over 2
    assert last.quality == pytest.approx(1.0)
    assert last.is_feasible
    assert last.chance_feasible == 1.0
    # Every cell once: the sum of size * fraction over 2 modes.
    assert last.spent == pytest.approx(2 * (1 + 2 + 3 + 4) * (0.1 + 0.5 + 1.0))
    spent = [moment.spent for moment in run.moments]
    assert spent == sorted(spent)
    assert all(moment.ask_seconds >= 0 for moment in run.moments)


def test_two_replays_with_one_seed_are_identical_but_for_the_clock():
    first, second = (replay(table(), "trimtuner", seed=3, trials=8) for _ in range(2))
    for one, other in zip(first.moments, second.moments, strict=True):
        assert (one.spent, one.quality, one.config, one.fraction) == (
            other.spent,
            other.quality,
            other.config,
            other.fraction,
        )


def test_the_worth_of_a_recommendation_over_the_limit_shrinks_with_the_excess():
    # With nothing measured but size 3 the recommendation may be infeasible: Accuracy_C is accuracy * limit / cost.
    best = accuracy(2, "async", 1.0)
    for seed in range(4):
        for moment in replay(table(), "trimtuner-dt", seed=seed, trials=6).moments:
            size, mode = moment.config["size"], moment.config["mode"]
            expected = accuracy(size, mode, 1.0) / best * min(1.0, 2.0 / size)
            assert moment.quality == pytest.approx(expected)
            assert moment.is_feasible == (size <= 2)


def test_a_replay_stops_at_its_trials_and_at_its_money():
    assert len(replay(table(), "trimtuner-dt", seed=0, trials=3).moments) == 3
    # The mean full-data run costs (1 + 2 + 3 + 4) / 4 = 2.5 USD.
    run = replay(table(), "trimtuner-dt", seed=0, trials=100, budget_runs=1.0)
    assert run.moments[-1].spent >= 2.5
    assert all(moment.spent < 2.5 for moment in run.moments[:-1])


def test_a_limit_given_to_the_replay_takes_the_place_of_the_tables_own():
    run = replay(table(), "trimtuner-dt", seed=0, trials=100, constraints=["cost <= 3", "time <= 2h"])
    assert run.moments[-1].config == {"size": 3, "mode": "async"}


def test_failures_in_a_table_are_failures_of_the_search():
    run = replay(table(failed="failed"), "trimtuner-dt", seed=0, trials=100, constraints=["cost <= 4"])
    last = run.moments[-1]
    assert last.config == {"size": 3, "mode": "async"}  # size 4 would be better, but runs out of memory
    assert last.quality == pytest.approx(1.0)
    assert last.spent == pytest.approx(2 * (1 + 2 + 3 + 4) * (0.1 + 0.5 + 1.0))


def test_snapshots_of_a_table_are_told_and_charged_once():
    run = replay(table(snapshots=True), "trimtuner-gp", seed=0, trials=1)
    (moment,) = run.moments
    assert moment.fraction == 0.5
    assert moment.spent in [pytest.approx(0.5 * size) for size in (1, 2, 3, 4)]


def bumpy_table():
    """Snapshots of which some fail, some come after the run has failed, and some took longer by themselves."""
    full = {1: (3600, ""), 2: (3600, "oom"), 3: (900, "oom"), 4: (3600, ""), 5: (3600, "oom")}  # seconds, and its end
    half = {1: (1800, ""), 2: (1800, "oom"), 3: (1800, ""), 4: (7200, ""), 5: (1800, "")}
    tenth = {1: (360, "oom"), 2: (360, ""), 3: (360, ""), 4: (360, ""), 5: (360, "")}
    columns = ("size", "mode", "rows", "acc", "seconds", "usd", "failed")
    rows = [
        dict(
            zip(
                columns,
                (str(size), "sync", str(rows), f"0.{size}", str(cell[size][0]), "1", cell[size][1]),
                strict=True,
            )
        )
        for rows, cell in ((100, tenth), (500, half), (1000, full))
        for size in full
    ]
    return Table.read("bumpy", rows, {**DESCRIPTION, "snapshots": True, "failed": "failed"})


PASSED = {1: [0.5], 2: [0.1], 3: [0.1], 4: [0.1, 0.5], 5: [0.1, 0.5]}  # on the way to all of the data


@pytest.mark.parametrize("size", PASSED)
def test_what_a_run_told_before_it_failed_is_measured_and_what_comes_later_is_not(size):
    end, passed = bumpy_table().told({"size": size, "mode": "sync"}, 1.0, (0.1, 0.5))
    assert list(passed) == PASSED[size]
    assert end.failed == ("oom" if size in (2, 3, 5) else None)


def test_a_rehearsal_and_a_replay_of_one_table_have_one_history(tmp_path):
    """Through the engine, the clock and the record, or told at once: the same trials, measured and charged the same."""
    bumpy = bumpy_table()
    problem = Problem.of(bumpy.space, "accuracy", None, ["cost <= 2"], None, 1e6)
    recipe = recipe_named("trimtuner").but(design=AcrossFractions(), stop=tt.AfterTrials(8))

    description = Description(problem, "trimtuner", 1)
    replayed = Study.of(description, recipe, InMemory())
    for _ in range(8):
        tell_from_table(replayed, bumpy, replayed.ask())

    memory = Recorded(tmp_path / "a.db", "a", description)
    rehearsed = Study.of(description, recipe, memory)
    engine = ReplayEngine(tmp_path / "trials", bytes(32), scripts_of(bumpy), pace=1e6)

    def launch(study, trial, attempt):
        place = tmp_path / "trials" / study
        about = {"configuration": trial.config, "fraction": trial.fraction, "snapshots": trial.snapshots}
        return Launch(study, trial.number, attempt, ("none",), place, tmp_path, {}, (), 1e6, **about)

    Driver(rehearsed, memory, engine, launch).run()
    assert [told_of(one) for one in rehearsed.history.outcomes] == [told_of(one) for one in replayed.history.outcomes]
    ways = {(one.failed, len(one.measurements)) for one in replayed.history.outcomes}
    assert {kind for kind, _ in ways} == {None, "oom"}
    assert max(count for kind, count in ways if kind == "oom") > 0


def told_of(outcome):
    measured = [(one.fraction, {**one.metrics}) for one in outcome.measurements]
    return {**outcome.trial.config}, outcome.trial.fraction, outcome.failed, outcome.cost, outcome.time, measured


SEARCH = {"seed": 0, "trials": 100}
CELLS = [
    ({"size": size, "mode": mode}, fraction)
    for size in (1, 2, 3, 4)
    for mode in ("sync", "async")
    for fraction in (0.1, 0.5, 1.0)
]


def is_accurate(config, fraction, limit=0.7):
    return accuracy(config["size"], config["mode"], fraction) >= limit


def cost(config, fraction):
    return config["size"] * fraction


def least_cost(fractions, limit=0.7):
    return min(cost(config, f) for config, f in CELLS if f in fractions and is_accurate(config, f, limit))


def test_a_goal_given_to_the_replay_takes_the_place_of_the_tables_own():
    """The table maximises accuracy; the cheapest run of 0.7 is not its most accurate."""
    run = replay(table(), "trimtuner-dt", **SEARCH, minimize="cost", constraints=["accuracy >= 0.7"])
    last = run.moments[-1]
    assert last.quality == pytest.approx(1.0)
    assert cost(last.config, last.recommended_fraction) == pytest.approx(least_cost((0.1, 0.5, 1.0)))
    assert last.recommended_fraction < 1.0


def test_the_fraction_of_a_moment_is_the_trials_and_the_recommended_one_is_where_the_goal_is_meant():
    accurate = replay(table(), "trimtuner-dt", seed=0, trials=6)
    assert {moment.recommended_fraction for moment in accurate.moments} == {1.0}
    assert accurate.moments[0].fraction < 1.0
    full = replay(table(), "lynceus", seed=0, trials=6, minimize="cost", constraints=["accuracy >= 0.7"])
    assert {(moment.fraction, moment.recommended_fraction) for moment in full.moments} == {(1.0, 1.0)}


def test_the_time_of_a_moment_is_what_the_trials_took_one_after_the_other():
    """An hour at full data, so fractions of one."""
    run = replay(table(), "random", seed=0, trials=10, minimize="cost", constraints=["accuracy >= 0.7"])
    expected = 0.0
    for moment in run.moments:
        expected += 3600.0 * moment.fraction
        assert moment.time == pytest.approx(expected)
    assert len({moment.fraction for moment in run.moments}) > 1


def test_the_time_of_snapshots_is_that_of_the_run_they_are_part_of():
    (moment,) = replay(table(snapshots=True), "trimtuner-gp", seed=0, trials=1).moments
    assert moment.time == pytest.approx(3600.0 * 0.5)


def test_the_time_of_failures_counts():
    run = replay(table(failed="failed"), "random", seed=0, trials=100)
    assert len(run.moments) == 8
    assert run.moments[-1].time == pytest.approx(8 * 3600.0)


def test_before_anything_ran_a_moment_has_no_recommendation_and_no_worth():
    """Everything of size 4 fails, and with these seeds something of size 4 comes first."""
    firsts = [replay(table(failed="failed"), "random", seed=seed, trials=1).moments[0] for seed in range(20)]
    empty = [moment for moment in firsts if not moment.config]
    assert 0 < len(empty) < 20
    for moment in empty:
        assert (moment.quality, moment.is_feasible, moment.chance_feasible) == (0.0, False, 0.0)
        assert moment.spent == 4.0


def test_a_budget_is_known_to_the_method_and_kept_by_it():
    """Cheaper trials are chosen towards its end; a cut by the mean full run is not known, and is passed."""
    known = replay(table(), "trimtuner-dt", **SEARCH, budget=2.5)
    cut = replay(table(), "trimtuner-dt", **SEARCH, budget_runs=1.0)
    assert known.moments[-1].spent <= 2.5 <= cut.moments[-1].spent


def test_a_budget_ends_a_search_that_does_not_look_at_it_once_it_is_spent():
    run = replay(table(), "random", **SEARCH, budget=5.0)
    assert run.moments[-1].spent >= 5.0
    assert all(moment.spent < 5.0 for moment in run.moments[:-1])


@pytest.mark.parametrize("method", ["trimtuner-dt", "random", "eic"])
def test_a_search_until_the_best_ends_when_the_best_is_measured_and_recommended(method):
    long, short = (replay(table(), method, **SEARCH, until_best=flag) for flag in (False, True))
    assert len(short.moments) < len(long.moments)
    steps = zip(short.moments, long.moments, strict=False)
    assert all((one.config, one.spent) == (other.config, other.spent) for one, other in steps)
    assert short.moments[-1].config == {"size": 2, "mode": "async"}
    assert short.moments[-1].fraction == 1.0 or method == "trimtuner-dt"
    assert short.moments[-1].chance_feasible == 1.0


def test_a_search_until_the_best_does_not_end_at_a_forecast():
    """Fabulinus never tests on all of the data: it recommends the best long before the end, and never measures it."""
    run = replay(table(), "fabulinus", **SEARCH, constraints=[], until_best=True)
    assert len(run.moments) == 8 * 2
    assert any(moment.quality == 1.0 for moment in run.moments[:-1])


def test_a_search_on_all_of_the_data_ends_at_the_best_there_is_on_all_of_it():
    """The cheapest on less data is out of its reach: its quality stays below 1, and yet it is done."""
    run = replay(table(), "lynceus", **SEARCH, minimize="cost", constraints=["accuracy >= 0.7"], until_best=True)
    last = run.moments[-1]
    assert cost(last.config, last.recommended_fraction) == pytest.approx(least_cost((1.0,)))
    assert last.quality == pytest.approx(least_cost((0.1, 0.5, 1.0)) / least_cost((1.0,)))
    assert len(run.moments) < 8


@pytest.mark.parametrize("limit", [0.7, 0.85])
@pytest.mark.parametrize("method", ["nephele", "lynceus", "random", "ei:ignore_constraints=true"])
def test_what_is_cheap_because_it_breaks_a_limit_is_never_worth_more_than_the_best(method, limit):
    """Worth is best/cost, at most 1, times accuracy/limit for what is not accurate enough."""
    best = least_cost((0.1, 0.5, 1.0), limit)
    for seed in range(4):
        run = replay(table(), method, seed, 4, minimize="cost", constraints=[f"accuracy >= {limit}"])
        for moment in run.moments:
            reached = accuracy(moment.config["size"], moment.config["mode"], moment.recommended_fraction)
            value = min(best / cost(moment.config, moment.recommended_fraction), 1.0) * min(reached / limit, 1.0)
            assert moment.quality == pytest.approx(value)
            assert moment.is_feasible == (reached >= limit)
            assert moment.quality <= 1.0 + 1e-12
            assert moment.is_feasible or moment.quality < 1.0


def test_some_of_those_were_cheap_because_they_broke_the_limit():
    """Or the claim above would say nothing."""
    run = replay(table(), "ei:ignore_constraints=true", 0, 8, minimize="cost", constraints=["accuracy >= 0.85"])
    last = run.moments[-1]
    assert not last.is_feasible
    assert cost(last.config, 1.0) < least_cost((0.1, 0.5, 1.0), 0.85)


def test_a_search_for_the_least_cost_is_scored_against_the_cheapest_cell():
    changed = table(problem={"minimize": "cost", "constraints": ["accuracy >= 0.7"]})
    cheapest = min(
        size * fraction
        for size in (1, 2, 3, 4)
        for mode in ("sync", "async")
        for fraction in (0.1, 0.5, 1.0)
        if accuracy(size, mode, fraction) >= 0.7
    )
    last = replay(changed, "trimtuner-dt", seed=0, trials=100).moments[-1]
    assert last.quality == pytest.approx(1.0)
    assert cheapest < 1.0


@pytest.mark.parametrize(
    ("constraints", "complaint"),
    [
        (["cost <= 0.001"], "no configuration of table 'tiny' meets"),
        (["latency_ms <= 40"], "table 'tiny' has no metric 'latency_ms', only accuracy, cost, time"),
        (["cots <= 1"], r"did you mean 'cost'\?"),
        (["cost"], "not of the form"),
    ],
)
def test_a_limit_the_table_cannot_answer_is_an_input_error(constraints, complaint):
    with pytest.raises(tt.InputError, match=complaint):
        replay(table(), "trimtuner-dt", seed=0, trials=3, constraints=constraints)


@pytest.mark.parametrize("method", ["trimtuner", "trimtuner-dt", "eic", "random", "hyperband", "nephele"])
def test_with_runs_that_are_stopped_no_trial_costs_more_than_a_fifth_over_the_limit(method):
    """Sizes 1 to 3 cost as many USD on all of the data; with 1 USD allowed, 2 and 3 are stopped at 1.20."""
    run = replay(table(), method, 1, 18, constraints=["cost <= 1"], stop_at_limits=True)
    before = [0.0, *(moment.spent for moment in run.moments)]
    costs = [after - earlier for earlier, after in pairwise(before)]
    assert max(costs) <= 1.2 + 1e-9
    assert max(costs) == pytest.approx(1.2)
    assert run.moments[-1].is_feasible
    assert run.moments[-1].config["size"] == 1


def test_a_stopped_run_tells_what_it_had_measured_before():
    """At 2 USD an hour, 1 USD pays for 0.6 h with the fifth: half of the data was reached after 0.5 h."""
    tiny = table()
    study = Study(tiny.space.with_snapshots(True), maximize="accuracy", constraints=["cost <= 1"])
    study.enqueue({"size": 2, "mode": "sync"})
    tell_from_table(study, tiny, study.ask(), stop_at_limits=True)
    outcome = study.history.outcomes[-1]
    assert outcome.is_over_limit
    assert (outcome.time, outcome.cost) == (pytest.approx(0.6 * 3600.0), pytest.approx(1.2))
    assert [one.fraction for one in outcome.measurements] == [0.1, 0.5]
