"""Jobs between the measurements of a table."""

import numpy as np
import pytest

from benchmarks.continuous import FreeJob, Smooth, search_with
from benchmarks.peers.peer import FULL
from benchmarks.tables.public_jobs import read_public_job


@pytest.fixture(scope="module")
def nets():
    return Smooth("lcb168330")


@pytest.fixture(scope="module")
def trees():
    return Smooth("rpart24")


@pytest.mark.parametrize("fraction", [0.057692, 1.0])
def test_at_a_configuration_of_the_table_it_measures_what_the_table_does(nets, fraction):
    table = read_public_job("lcb168330")
    for configuration in table.configurations[::40]:
        cell = table.cell(configuration, fraction)
        accuracy, cost = nets.run(configuration, fraction)
        assert accuracy == pytest.approx(cell.metrics["accuracy"], rel=1e-6)
        assert cost == pytest.approx(cell.metrics["cost"], rel=1e-6)


def test_its_best_is_no_worse_than_the_best_of_the_table_within_the_limit(trees):
    table = read_public_job("rpart24")
    full = [table.cell(one, 1.0).metrics for one in table.configurations]
    assert trees.best >= max(one["accuracy"] for one in full if one["cost"] <= trees.limit) - 1e-9


def test_a_place_becomes_numbers_between_the_bounds_and_back(nets):
    place = np.random.default_rng(0).random(len(nets.parameters)).tolist()
    found = nets.configuration(place)
    whole = [one.name in nets.whole for one in nets.parameters]
    assert any(whole)
    for is_whole, one, share, again in zip(whole, nets.parameters, place, nets.place(found), strict=True):
        assert one.values[0] <= found[one.name] <= one.values[1]
        assert isinstance(found[one.name], int) if is_whole else again == pytest.approx(share)


def test_the_same_wish_is_the_same_configuration_and_no_run_is_charged_for_more_than_a_stopped_one(trees):
    job = FreeJob(trees)
    names = [one.name for one in trees.parameters]
    wishes = [dict.fromkeys(names, share) for share in (0.0, 0.5, 1.0, 0.5)]
    assert [job.nearest(wish) for wish in wishes] == [0, 1, 2, 1]
    assert job.count == 3
    for position in range(3):
        outcome = job.measure((position, FULL))
        assert outcome.cost == pytest.approx(trees.run(job.configuration(position), 1.0)[1])
        assert job.charge(outcome) == pytest.approx(min(outcome.cost, 1.2 * trees.limit))


@pytest.mark.parametrize("method", ["trimtuner", "eic"])
def test_a_search_of_ours_is_charged_for_what_it_ran_and_judged_by_the_truth(trees, method):
    run = search_with(method, trees, seed=0, trials=5)
    paid = np.diff([0.0, *(one.spent for one in run.moments)])
    assert len(paid) == 5
    assert (paid > 0.0).all()
    assert paid.max() <= 1.2 * trees.limit * (1 + 1e-9)
    assert [one.quality for one in run.moments] == [
        trees.quality(one.config) if one.config else 0.0 for one in run.moments
    ]
