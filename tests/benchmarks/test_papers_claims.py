"""Verdicts follow from the figures: the same claim is as theirs on some results and reversed on others."""

import math

import numpy as np
import pytest

from benchmarks.papers import curves
from benchmarks.papers.claims import (
    Claim,
    Finding,
    Verdict,
    claims_table,
    judge_at_most,
    judge_more,
    judge_ratio,
    judge_same,
    up_to,
)
from benchmarks.papers.claims_fabulinus import saved
from benchmarks.papers.claims_trimtuner import claims_to_the_letter, costs_per_step
from benchmarks.papers.curves import Axis, Estimate
from benchmarks.papers.experiments import Experiment, Plan
from benchmarks.papers.facts import Cells
from benchmarks.papers.jobs import CNN, RNN
from benchmarks.papers.notes import SEEN
from benchmarks.papers.report import claims_of
from benchmarks.papers.results import Measured, Results
from benchmarks.papers.searches import Trace

TRIALS = 12


def trace(step_usd, good_after, ask_seconds=1.0, seconds_per_usd=3600.0, bad=0.1, fraction=1.0):
    """A search that pays the same for every trial and is perfect after some of them."""
    numbers = range(1, TRIALS + 1)
    return Trace(
        spent=tuple(step_usd * number for number in numbers),
        seconds=tuple(seconds_per_usd * step_usd * number for number in numbers),
        ask_seconds=(ask_seconds,) * TRIALS,
        quality=tuple(1.0 if number >= good_after else bad for number in numbers),
        feasible=tuple(number >= good_after for number in numbers),
        fraction=(fraction,) * TRIALS,
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
    """By claim: the verdicts that were given."""
    results = Results(Plan((CNN, RNN), tuple(Experiment), 10, TRIALS), Pretended(traces))
    measurements = [(CNN, CELLS), (RNN, RNN_CELLS)]
    claims = [*claims_of(results, measurements), *claims_to_the_letter(results, measurements)]
    assert len({claim.name for claim in claims}) == len(claims)
    assert claims_table(claims).count("\n") == len(claims) + 1
    return {claim.name: [one.verdict for one in claim.findings if one.verdict is not None] for claim in claims}


BUDGET = 5.0  # of initial samples on cnn
AS_THE_PAPERS_SAY = {
    "trimtuner-dt": trace(0.01, 2, ask_seconds=1.36, fraction=0.25),
    "trimtuner-gp": trace(0.01, 2, ask_seconds=18.0, fraction=0.25),
    "eic-usd": trace(0.024, 8, ask_seconds=1.17),
    "eic": trace(0.1, 10, ask_seconds=1.17),
    "fabolas": trace(0.02, 99, ask_seconds=13.96),
    "random": trace(0.1, 4),
    "trimtuner-gp:filter=cmaes": trace(0.0362, 2, ask_seconds=33.0),
    "trimtuner-gp:filter=direct": trace(0.07, 2, ask_seconds=38.0),
    "trimtuner-gp:filter=random": trace(0.01, 2, ask_seconds=18.0),
    "trimtuner-gp:filter=none": trace(0.01, 2, ask_seconds=134.0),
    "trimtuner-dt:filter=random": trace(0.01, 2, ask_seconds=1.36),
    "trimtuner-dt:filter=cea,beta=0.01": trace(0.01, 99, ask_seconds=1.1),
}
THE_OTHER_WAY_ROUND = {
    "trimtuner-dt": trace(1.0, 8, ask_seconds=99.0, bad=0.2),
    "trimtuner-gp": trace(0.01, 2, ask_seconds=1.0),
    "eic-usd": trace(0.6, 2),
    "eic": trace(0.5, 2, ask_seconds=3.0),
    "fabolas": trace(0.01, 2, ask_seconds=2.0),
    "random": trace(1.0, 99),
    "trimtuner-gp:filter=cmaes": trace(0.001, 2, ask_seconds=0.9),
    "trimtuner-gp:filter=direct": trace(0.001, 2, ask_seconds=0.9),
    "trimtuner-gp:filter=none": trace(0.001, 2, ask_seconds=0.9),
    "trimtuner-gp:filter=random": trace(0.001, 2, ask_seconds=0.1),
    "trimtuner-dt:filter=random": trace(0.001, 2, ask_seconds=0.1),
    "trimtuner-dt:filter=none": trace(0.01, 99),
    "nephele:horizon=0": trace(4.0, 4),
    "nephele:horizon=1": trace(1.0, 2),
    "nephele:horizon=2": trace(1.0, 2),
    "lynceus": trace(1.0, 2),
    "cherrypick": trace(0.9, 2),
    "fabulinus": trace(2.0, 8, seconds_per_usd=0.001, ask_seconds=0.0),
}


def test_claims_on_trimtuner_are_as_theirs_on_results_that_are_as_the_paper_says():
    found = verdicts(AS_THE_PAPERS_SAY)
    on_asks = [name for name in found if name.startswith("asks-")]
    assert {name: found[name] for name in on_asks if set(found[name]) != {Verdict.AS_THEIRS}} == {}
    for name in ("step-eic", "step-eic-usd", "step-eic-against-usd", "mean-fraction", "fabolas-worst", "trees-as-good"):
        assert set(found[name]) == {Verdict.AS_THEIRS}, name
    for name in ("cost-to-90-eic", "cost-to-90-eic-usd", "filter-CMA-ES", "filter-DIRECT", "fewer-worse", "share-kept"):
        assert found[name] == [Verdict.AS_THEIRS] * len(found[name]) != [], name


def test_no_claim_on_searches_stands_on_results_that_are_the_other_way_round():
    found = verdicts(THE_OTHER_WAY_ROUND)
    of_measurements = {"cheaper-with-less-data", "initial-samples"}
    good = {Verdict.AS_THEIRS, Verdict.STRONGER}
    standing = {name for name, given in found.items() if set(given) & good} - of_measurements
    # What they cannot turn: some are the same line with few and many trees, or keep limits in the end; where no
    # filter is the worst, a filter costs no more; and where random search is the worst, it is dearer.
    limits = {"limits-eic", "limits-fabulinus"}
    assert standing == {"more-trees-nephele", "share-kept", "letter-share-kept", "random-dearer"} | limits


def test_claims_without_results_are_not_judged():
    found = verdicts({})
    assert {name for name, given in found.items() if given} == {"cheaper-with-less-data", "initial-samples"}


@pytest.mark.parametrize(
    ("theirs", "ours", "verdict"),
    [
        (10.0, Estimate(8.3, 7.0, 9.0), Verdict.AS_THEIRS),  # within a quarter
        (10.0, Estimate(5.0, 2.0, 20.0), Verdict.AS_THEIRS),  # the interval holds it
        (10.0, Estimate(3.0, 2.0, 5.0), Verdict.WEAKER),
        (2.4, Estimate(10.0, 8.0, 13.0), Verdict.STRONGER),
        (1.2, Estimate(1.0, 0.9, 1.1), Verdict.NOT_SEEN),
        (1.2, Estimate(1.0, 0.8, 1.3), Verdict.UNDECIDED),
        (10.0, Estimate(0.2, 0.1, 0.4), Verdict.REVERSED),
        (10.0, Estimate(0.0, 0.0, 0.0), Verdict.REVERSED),  # only ours never gets there
        (10.0, Estimate(math.inf, 3.0, math.inf), Verdict.AS_THEIRS),
        (10.0, Estimate(math.inf, 30.0, math.inf), Verdict.STRONGER),
        (10.0, Estimate(math.nan, math.nan, math.nan), Verdict.UNDECIDED),
    ],
)
def test_a_ratio_is_judged_by_its_rule(theirs, ours, verdict):
    assert judge_ratio(theirs, ours) is verdict


@pytest.mark.parametrize(
    ("ours", "more", "same", "at_most"),
    [
        (Estimate(1.2, 1.1, 1.24), Verdict.AS_THEIRS, Verdict.AS_THEIRS, Verdict.AS_THEIRS),
        (Estimate(0.5, 0.4, 0.6), Verdict.REVERSED, Verdict.DIFFERS, Verdict.AS_THEIRS),
        (Estimate(1.1, 0.9, 1.6), Verdict.UNDECIDED, Verdict.UNDECIDED, Verdict.UNDECIDED),
        (Estimate(3.0, 2.0, 4.0), Verdict.AS_THEIRS, Verdict.DIFFERS, Verdict.REVERSED),
    ],
)
def test_more_the_same_and_no_more_are_judged_by_their_rules(ours, more, same, at_most):
    assert (judge_more(ours), judge_same(1.0, ours), judge_at_most(1.25, ours)) == (more, same, at_most)


def test_up_to_is_judged_on_the_largest_and_elsewhere_only_where_it_is_reversed():
    found = [
        ("A", Estimate(math.nan, math.nan, math.nan), ""),
        ("B", Estimate(9.0, 8.0, 10.0), ""),
        ("C", Estimate(2.0, 1.5, 3.0), ""),
        ("D", Estimate(0.5, 0.4, 0.6), ""),
    ]
    given = {one.where: one.verdict for one in up_to(10.0, found)}
    assert given == {"A": None, "B": Verdict.AS_THEIRS, "C": None, "D": Verdict.REVERSED}


def test_a_row_names_the_jobs_only_where_they_differ():
    one, other = Finding("CNN", "2 x", Verdict.WEAKER), Finding("RNN", "3 x", Verdict.WEAKER)
    assert Claim("name", "source", "statement", "theirs", (one, other)).verdict == "weaker"
    other = Finding("RNN", "9 x", Verdict.STRONGER)
    assert Claim("name", "source", "statement", "theirs", (one, other)).verdict == "CNN: weaker; RNN: stronger"


def test_of_every_claim_it_is_said_what_was_seen():
    assert set(SEEN) == set(verdicts({}))


def test_a_saving_in_per_cent_is_a_ratio():
    assert saved(5.0) == pytest.approx(80.0)
    assert saved(0.5) == pytest.approx(-100.0)
    assert saved(0.0) == -math.inf


def test_the_price_of_a_trial_leaves_the_initial_ones_out():
    dear_start = Trace((9.0, 10.0, 11.0), (1.0,) * 3, (0.0,) * 3, (1.0,) * 3, (True,) * 3, (1.0,) * 3)
    assert costs_per_step(Measured("", "", 1, False, 1, (dear_start,))) == [1.0]


def test_a_median_of_an_even_number_is_half_way_and_never_where_one_of_the_two_is():
    assert curves.median([4.0, 1.0, 3.0, 2.0]) == 2.5
    assert curves.median([1.0, 2.0, math.inf, math.inf]) == math.inf
    assert curves.percentile([1.0, 2.0, math.inf], 50.0) == 2.0


@pytest.mark.parametrize("percent", [0.0, 10.0, 50.0, 90.0, 95.0, 100.0])
def test_percentiles_are_the_usual_ones(percent):
    values = np.random.default_rng(0).normal(size=(3, 12))
    assert curves.percentiles(values, percent) == pytest.approx(np.percentile(values, percent, axis=1))


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
    assert curves.ratio([2.0] * 3, [math.inf] * 3).value == 0.0
    assert math.isnan(curves.ratio([math.inf] * 3, [math.inf] * 3).value)
