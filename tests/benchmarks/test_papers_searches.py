"""Finished searches stay finished: the file of results, and the processes that fill it."""

import dataclasses
import json

import pytest

from benchmarks.papers import paper, runner
from benchmarks.papers.cache import Cache
from benchmarks.papers.experiments import Experiment, Plan
from benchmarks.papers.jobs import CNN, RNN, Job, digest, load
from benchmarks.papers.searches import Goal, Search, Trace, longest_of_each, run_search
from trimtuner.errors import TrimTunerError
from trimtuner.tuning.recipes import recipe_named

CSV = ["size,mode,rows,acc,seconds,usd"] + [
    f"{size},{mode},{rows},{(0.5 + 0.1 * size + 0.03 * (mode == 'async')) * (rows / 1000) ** 0.1},{0.2 * rows},{size}"
    for size in (1, 2, 3, 4)
    for mode in ("sync", "async")
    for rows in (100, 500, 1000)
]
TOML = """
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
constraints = ["cost <= 0.12"]
"""
A_TRACE = Trace((0.1, 0.2), (1.0, 2.0), (0.01, 0.02), (0.5, 1.0), (False, True), (0.5, 1.0))


@pytest.fixture
def tiny(tmp_path):
    (tmp_path / "tiny.csv").write_text("\n".join(CSV), encoding="utf-8")
    (tmp_path / "tiny.toml").write_text(TOML, encoding="utf-8")
    return Job("tiny", "Tiny", 0.12, (0.1,), 0.1, 1.0, str(tmp_path / "tiny.csv"))


def search(job, seed=0, trials=4, method="random", **more):
    return Search(job, method, seed, Goal.ACCURACY, trials, **more)


def cache_at(path, version="1"):
    return Cache(path, lambda one: {"version": version, "table": one.job.name})


def test_a_result_is_found_again_as_it_was_kept(tmp_path, tiny):
    cache_at(tmp_path / "deep" / "results.jsonl").add(search(tiny, trials=2), A_TRACE)
    assert cache_at(tmp_path / "deep" / "results.jsonl").find(search(tiny, trials=2)) == A_TRACE


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"method": "eic"},
        {"budget": 3.0},
        {"goal": Goal.COST},
        {"is_on_full_data": True},
        {"job": dataclasses.replace(CNN, name="other")},
        {"job": dataclasses.replace(CNN, cost_limit=0.5)},
    ],
)
def test_another_search_is_not_taken_for_it(tmp_path, other):
    cache = cache_at(tmp_path / "results.jsonl")
    cache.add(search(CNN), A_TRACE)
    assert dataclasses.replace(search(CNN), **other) not in cache


def test_results_of_another_version_or_of_other_measurements_are_not_read(tmp_path, tiny):
    path = tmp_path / "results.jsonl"
    cache_at(path, version="1").add(search(tiny), A_TRACE)
    assert search(tiny) not in cache_at(path, version="2")
    assert search(tiny) not in Cache(path, lambda _: {"version": "1", "table": "measured anew"})
    assert search(tiny) in cache_at(path, version="1")


def test_a_longer_search_serves_for_a_shorter_one_and_not_the_other_way_round(tmp_path, tiny):
    cache = cache_at(tmp_path / "results.jsonl")
    cache.add(search(tiny, trials=2), A_TRACE)
    assert cache.find(search(tiny, trials=1)) == A_TRACE.first(1)
    assert cache.find(search(tiny, trials=3)) is None
    assert longest_of_each([search(tiny, trials=2), search(tiny, 1), search(tiny, trials=9)]) == [
        search(tiny, trials=9),
        search(tiny, 1),
    ]


def test_a_longer_search_passes_what_a_shorter_one_does(tiny):
    longer, shorter = (run_search(search(tiny, trials=trials, method="trimtuner-dt")) for trials in (6, 3))
    assert longer.first(3).spent == shorter.spent
    assert longer.first(3).quality == shorter.quality


def test_half_a_line_spoils_only_itself(tmp_path, tiny):
    path = tmp_path / "results.jsonl"
    cache_at(path).add(search(tiny, 0), A_TRACE)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    cache = cache_at(path)
    assert search(tiny, 0) in cache
    cache.add(search(tiny, 1), A_TRACE)
    again = cache_at(path)
    assert search(tiny, 0) in again
    assert search(tiny, 1) in again


def test_only_what_is_missing_is_run(tmp_path, tiny):
    cache = Cache(tmp_path / "results.jsonl", lambda one: {"table": digest(load(one.job))})
    wanted = [search(tiny, seed) for seed in range(3)]
    cache.add(wanted[1], A_TRACE)
    runner.run_missing(wanted, cache, jobs=1)
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["key"]["seed"] for line in lines] == [1, 0, 2]
    assert cache.find(wanted[1]) == A_TRACE.first(4)


def test_a_search_that_fails_is_told_of_and_the_others_are_kept(tmp_path, tiny, capfd):
    cache = cache_at(tmp_path / "results.jsonl")
    with pytest.raises(TrimTunerError, match=r"1 of 2 searches failed.*no such method"):
        runner.run_missing([search(tiny, method="no such method"), search(tiny)], cache, jobs=1)
    assert search(tiny) in cache
    assert "2 of 2 searches" in capfd.readouterr().err


def test_the_search_for_the_least_cost_ends_with_its_best(tiny):
    cheapest = dataclasses.replace(search(tiny, trials=24), goal=Goal.COST, budget=10.0)
    trace = run_search(cheapest)
    assert trace.quality[-1] == 1.0
    assert trace.feasible[-1]
    assert not any(share >= 1.0 and met for share, met in zip(trace.quality[:-1], trace.feasible[:-1], strict=True))


def test_the_full_form_has_the_seeds_of_the_papers_and_runs_each_search_once():
    plan = Plan((CNN, RNN), tuple(Experiment), most_seeds=100, most_trials=10_000)
    searches = plan.searches()
    assert len({dataclasses.replace(one, trials=0) for one in searches}) == len(searches)
    seeds = {
        experiment: {len(line.searches) for job in (CNN, RNN) for line in plan.lines(experiment, job)}
        for experiment in Experiment
    }
    few, many = {10}, {100}
    assert seeds == {
        Experiment.METHODS: few,
        Experiment.FILTERS: {10, 30},  # more for the lines of Fig. 4
        Experiment.TREES: many,
        Experiment.INITIAL_BUDGETS: many,
        Experiment.OPTIMISERS: many,
        Experiment.HORIZONS: many,
        Experiment.FABULINUS: few,
    }
    ahead = [one for one in searches if "horizon=2" not in one.method and "nephele:horizon=1" not in one.method]
    assert [one.seed for one in ahead] == sorted(one.seed for one in ahead)
    assert [one.seed for one in searches[:400]] == sorted(one.seed for one in searches[:400])


def test_a_method_whose_parts_were_changed_has_no_results_yet(monkeypatch):
    known = [paper.marks(search(CNN, method=text)) for text in ("eic", "eic:initial=4", "eic:initial=5")]
    assert known[0] == known[1] != known[2]
    paper.recipe_digest.cache_clear()
    monkeypatch.setattr(paper, "recipe_named", lambda text: recipe_named(text).but(confidence=0.91))
    assert paper.marks(search(CNN, method="eic")) != known[0]
    paper.recipe_digest.cache_clear()


def test_every_method_of_the_plan_is_known():
    for one in Plan((CNN, RNN), tuple(Experiment), 1, 1).searches():
        recipe_named(one.method)
