"""Verdicts follow from the figures: the same claim holds on some results and not on others."""

import math

import numpy as np
import pytest

from benchmarks.papers import curves
from benchmarks.papers.claims import Verdict, claims_table, judge_all, judge_ratio, judge_reduction, largest
from benchmarks.papers.claims_thesis import claims_of_thesis
from benchmarks.papers.claims_trimtuner import claims_of_trimtuner
from benchmarks.papers.curves import Axis, Estimate
from benchmarks.papers.experiments import Experiment, Plan
from benchmarks.papers.facts import Cells
from benchmarks.papers.jobs import CNN, RNN
from benchmarks.papers.results import Results
from benchmarks.papers.searches import Trace

TRIALS = 12


def trace(step_usd, good_after, ask_seconds=1.0, seconds_per_usd=3600.0):
    """A search that pays the same for every trial and is perfect after some of them."""
    numbers = range(1, TRIALS + 1)
    return Trace(
        spent=tuple(step_usd * number for number in numbers),
        seconds=tuple(seconds_per_usd * step_usd * number for number in numbers),
        ask_seconds=(ask_seconds,) * TRIALS,
        quality=tuple(1.0 if number >= good_after else 0.1 for number in numbers),
        feasible=tuple(number >= good_after for number in numbers),
        fraction=(1.0,) * TRIALS,
    )


class Pretended:
    """A file of results in which each method does what the test says; longer beginnings go first."""

    def __init__(self, traces):
        self.traces = dict(sorted(traces.items(), key=lambda one: -len(one[0])))

    def find(self, search):
        return next((found for start, found in self.traces.items() if search.method.startswith(start)), None)

    def __contains__(self, search):
        return self.find(search) is not None


CELLS = Cells(
    fractions=(0.1, 0.25, 1.0),
    accuracy=np.full((2, 3), 0.9),
    cost=np.array([[1.0, 2.0, 4.1], [2.0, 3.0, 8.0]]),
    time=np.full((2, 3), 10.0),
)
RNN_CELLS = Cells(CELLS.fractions, CELLS.accuracy, np.array([[2.0, 1.0, 2.1], [3.0, 2.0, 4.0]]), CELLS.time)


def verdicts(traces):
    results = Results(Plan((CNN, RNN), tuple(Experiment), 10, TRIALS), Pretended(traces))
    measurements = [(CNN, CELLS), (RNN, RNN_CELLS)]
    claims = [*claims_of_trimtuner(results, measurements), *claims_of_thesis(results, measurements)]
    assert len({claim.name for claim in claims}) == len(claims)
    assert claims_table(claims).count("\n") == len(claims) + 1
    return {claim.name: claim.verdict for claim in claims}


AS_THE_PAPERS_SAY = {
    "trimtuner-dt": trace(0.01, 2, ask_seconds=1.0),
    "trimtuner-gp": trace(0.01, 2, ask_seconds=14.0),
    "eic-usd": trace(0.1, 3),
    "eic": trace(1.0, 2),
    "fabolas": trace(0.02, 99),
    "random": trace(1.0, 4),
    "trimtuner-gp:filter=cmaes": trace(0.04, 2),
    "trimtuner-gp:filter=direct": trace(0.08, 2),
    "trimtuner-dt:filter=none": trace(0.01, 2),
    "trimtuner-gp:filter=none": trace(0.01, 2, ask_seconds=130.0),
    "nephele:horizon=0": trace(1.0, 2),
    "nephele:horizon=1": trace(1.0, 2),
    "nephele:horizon=2": trace(1.4, 2),
    "lynceus": trace(2.0, 2),
    "lynceus:horizon=0,trees=20": trace(8.0, 2),
    "cherrypick": trace(4.0, 2),
    "cherrypick:model=trees,trees=20": trace(16.0, 2),
    "fabulinus": trace(0.005, 2, ask_seconds=90_000.0),
}
THE_OTHER_WAY_ROUND = {
    "trimtuner-dt": trace(1.0, 8, ask_seconds=9.0),
    "trimtuner-gp": trace(0.01, 2, ask_seconds=1.0),
    "eic": trace(0.5, 2),
    "fabolas": trace(0.01, 2),
    "random": trace(1.0, 99),
    "trimtuner-gp:filter=cmaes": trace(0.001, 2),
    "trimtuner-gp:filter=direct": trace(0.001, 2),
    "trimtuner-dt:filter=none": trace(0.01, 2),
    "nephele:horizon=0": trace(4.0, 4),
    "nephele:horizon=1": trace(1.0, 2),
    "nephele:horizon=2": trace(1.0, 2),
    "lynceus": trace(1.0, 2),
    "cherrypick": trace(1.0, 2),
    "fabulinus": trace(2.0, 8, seconds_per_usd=1.0),
}


def test_all_claims_hold_on_results_that_are_as_the_papers_say():
    found = verdicts(AS_THE_PAPERS_SAY)
    assert {name: verdict for name, verdict in found.items() if verdict is not Verdict.HOLDS} == {}


def test_no_claim_on_searches_holds_on_results_that_are_the_other_way_round():
    found = verdicts(THE_OTHER_WAY_ROUND)
    assert found.pop("cheaper-with-less-data") is Verdict.HOLDS  # of the measurements alone
    assert set(found.values()) == {Verdict.FAILS}


def test_claims_without_results_are_not_judged():
    found = verdicts({})
    assert found.pop("cheaper-with-less-data") is Verdict.HOLDS
    assert set(found.values()) == {Verdict.UNKNOWN}


@pytest.mark.parametrize(
    ("theirs", "ours", "verdict"),
    [
        (10.0, Estimate(8.3, 7.0, 9.0), Verdict.HOLDS),
        (10.0, Estimate(5.0, 2.0, 20.0), Verdict.HOLDS),
        (10.0, Estimate(3.0, 2.0, 5.0), Verdict.PARTLY),
        (1.2, Estimate(1.0, 0.9, 1.1), Verdict.FAILS),
        (1.2, Estimate(1.0, 0.8, 1.3), Verdict.UNDECIDED),
        (10.0, Estimate(0.2, 0.1, 0.4), Verdict.FAILS),
        (10.0, Estimate(math.inf, 3.0, math.inf), Verdict.HOLDS),
        (10.0, Estimate(math.nan, math.nan, math.nan), Verdict.FAILS),
    ],
)
def test_a_ratio_is_judged_by_its_rule(theirs, ours, verdict):
    assert judge_ratio(theirs, ours) is verdict


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        (Estimate(55.0, 50.0, 57.0), Verdict.HOLDS),
        (Estimate(30.0, 20.0, 40.0), Verdict.PARTLY),
        (Estimate(-10.0, -20.0, 5.0), Verdict.FAILS),
        (Estimate(-math.inf, -math.inf, -3.0), Verdict.FAILS),
    ],
)
def test_a_reduction_is_judged_by_its_rule(ours, verdict):
    assert judge_reduction(58.0, ours) is verdict


def test_a_claim_on_two_jobs_holds_in_part_when_it_holds_on_one():
    assert judge_all([Verdict.HOLDS, Verdict.FAILS]) is Verdict.PARTLY
    assert judge_all([Verdict.HOLDS, Verdict.UNKNOWN]) is Verdict.HOLDS
    assert judge_all([]) is Verdict.UNKNOWN


def test_up_to_takes_the_largest_that_is_known():
    unknown, small, large = (Estimate(value, value, value) for value in (math.nan, 2.0, 3.0))
    assert largest([unknown, large, small]) is large


def test_a_level_never_reached_costs_infinitely_much_and_stays_so_in_percentiles():
    never, soon = trace(1.0, 99), trace(1.0, 2)
    costs = [curves.settled(one, Axis.COST, curves.share_of_best, 0.9) for one in (never, soon, soon)]
    assert costs == [math.inf, 2.0, 2.0]
    assert curves.median(costs) == 2.0
    assert curves.percentile(costs, 90.0) == math.inf


def test_reached_for_good_is_after_the_last_lapse():
    lapsing = Trace((1.0, 2.0, 3.0), (1.0,) * 3, (0.0,) * 3, (0.95, 0.5, 0.95), (True,) * 3, (1.0,) * 3)
    assert curves.first_reached(lapsing, Axis.COST, curves.share_of_best, 0.9) == 1.0
    assert curves.settled(lapsing, Axis.COST, curves.share_of_best, 0.9) == 3.0


def test_curves_are_steps_that_keep_their_last_value():
    found = curves.steps([trace(1.0, 2)], Axis.COST, curves.share_of_best, 0.0, np.array([0.5, 1.0, 1.9, 2.0, 99.0]))
    assert found.mean.tolist() == [0.0, 0.1, 0.1, 1.0, 1.0]


def test_cost_is_infinite_until_something_feasible_is_recommended():
    assert curves.normalised_cost(4.0)(trace(1.0, 3)).tolist()[:3] == [math.inf, math.inf, 4.0]


def test_the_interval_of_a_ratio_holds_it_and_shrinks_to_it_without_spread():
    generator = np.random.default_rng(0)
    spread = curves.ratio(generator.lognormal(1.0, 0.3, 40).tolist(), generator.lognormal(0.0, 0.3, 40).tolist())
    assert spread.low < math.e < spread.high
    assert curves.ratio([4.0] * 5, [2.0] * 5) == Estimate(2.0, 2.0, 2.0)
    assert curves.ratio([math.inf] * 3, [2.0] * 3).value == math.inf
    assert math.isnan(curves.ratio([2.0] * 3, [math.inf] * 3).value)
