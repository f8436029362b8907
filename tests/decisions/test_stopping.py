"""Rules that end a search: where each fires, how they join, and that a study heeds them."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from decisions.fakes import (
    DEEP_FLOOR,
    IDENTITY,
    LOG,
    belief_of,
    failed,
    gaussian_of_times,
    gaussian_over,
    history_of,
    measurement,
    outlook_of,
    problem_of,
    ran,
    random_covariance,
    space_of,
    trial,
)
from trimtuner.decisions.entropy import ValueOfRecommendation, value_of_knowing_everything
from trimtuner.decisions.stopping import (
    AfterMoney,
    AfterTime,
    AfterTrials,
    LittleImprovement,
    NotWorthItsPrice,
    Prospect,
    Stop,
)
from trimtuner.errors import InputError, SearchOver
from trimtuner.problem.history import Outcome
from trimtuner.problem.space import Space
from trimtuner.study.study import Study

NOTHING_YET = history_of()
seeds = st.integers(0, 10_000)


def spending(*costs, seconds=1.0):
    return history_of(*(ran(number, 0, 1.0, score=1.0, cost=cost, time=seconds) for number, cost in enumerate(costs)))


def taking(*seconds):
    return history_of(*(ran(number, 0, 1.0, score=1.0, time=one) for number, one in enumerate(seconds)))


# --- trials, money, time: before, at and after the threshold


@pytest.mark.parametrize(("made", "fires"), [(0, False), (2, False), (3, True), (4, True)])
def test_after_trials_fires_from_so_many_trials_on(made, fires):
    assert (AfterTrials(3).reason(taking(*[1.0] * made), None) is not None) == fires


def test_trials_under_way_and_failed_trials_count():
    history = history_of(ran(0, 0, 1.0, score=1.0), failed(1, 1, 1.0), pending=[trial(2, 2, 1.0)])
    assert AfterTrials(3).reason(history, None) == "3 of 3 trials are made"
    assert AfterTrials(4).reason(history, None) is None


@pytest.mark.parametrize(
    ("costs", "fires"), [((), False), ((1.25, 1.25 - 1e-9), False), ((1.25, 1.25), True), ((1.25, 1.25 + 1e-9), True)]
)
def test_after_money_fires_from_the_amount_on(costs, fires):
    reason = AfterMoney(2.5).reason(spending(*costs), None)
    assert (reason is not None) == fires
    assert reason in (None, "2.5 of 2.5 USD are spent")


@pytest.mark.parametrize("rule", [AfterTime("2h"), AfterTime(7200), AfterTime(7200.0), AfterTime("120 min")])
@pytest.mark.parametrize(
    ("seconds", "fires"), [((), False), ((7000.0, 199.9), False), ((7000.0, 200.0), True), ((7201.0,), True)]
)
def test_after_time_fires_from_the_sum_of_the_trials_times_on(rule, seconds, fires):
    reason = rule.reason(taking(*seconds), None)
    assert (reason is not None) == fires
    assert reason is None or "7200 seconds" in reason


def test_a_trial_that_told_no_time_took_none():
    history = history_of(Outcome(trial(0, 0, 1.0), (), "oom", 0.0, None), ran(1, 0, 1.0, score=1.0, time=5.0))
    assert AfterTime(5).reason(history, None) is not None
    assert AfterTime(5.1).reason(history, None) is None


def test_what_was_imported_counts_neither_as_a_trial_nor_as_its_time():
    history = taking(5.0, 5.0, 5.0)
    first, *others = history.outcomes
    imported = replace(first, trial=replace(first.trial, origin="import"))
    history = replace(history, outcomes=(imported, *others))
    assert AfterTrials(3).reason(history, None) is None
    assert AfterTrials(2).reason(history, None) == "2 of 2 trials are made"
    assert AfterTime(11).reason(history, None) is None
    assert AfterTime(10).reason(history, None) is not None


def test_what_is_forgotten_is_no_trial_but_took_its_time():
    history = history_of(Outcome(trial(0, 0, 1.0), (), "exit", 0.0, 5.0), ran(1, 0, 1.0, score=1.0, time=5.0))
    forgotten = history.with_forgotten(0)
    assert AfterTrials(2).reason(history, None) is not None
    assert AfterTrials(2).reason(forgotten, None) is None
    assert AfterTime(10).reason(forgotten, None) is not None


@pytest.mark.parametrize(
    ("make", "says"),
    [
        *(
            (lambda trials=trials: AfterTrials(trials), "whole number from 1")
            for trials in (0, -1, 2.5, True, "3", None)
        ),
        *((lambda usd=usd: AfterMoney(usd), "USD") for usd in (0, -1.0, math.nan, math.inf, True, "5", None)),
        *((lambda time=time: AfterTime(time), "seconds") for time in (0, -5, math.nan, math.inf, True, None, [1])),
        *(
            (lambda text=text: AfterTime(text), "AfterTime")
            for text in ("", "soon", "2 parsecs", "h", "1e999h", "0s", "-2h")
        ),
        *((lambda share=share: LittleImprovement(share), "share") for share in (0.0, -0.1, math.nan, "10%", True)),
        *(
            (lambda worth=worth: NotWorthItsPrice(worth), "USD")
            for worth in (0.0, -3, math.inf, math.nan, "much", True)
        ),
    ],
)
def test_a_bad_argument_is_refused_with_what_it_should_be(make, says):
    with pytest.raises(InputError, match=says):
        make()


def test_a_refusal_repeats_what_was_given():
    with pytest.raises(InputError, match=r"AfterTrials\(2\.5\)"):
        AfterTrials(2.5)
    with pytest.raises(InputError, match="parsecs"):
        AfterTime("2 parsecs")


# --- joined


@dataclass(frozen=True)
class Says(Stop):
    """Fires with its name, or does not."""

    name: str
    fires: bool

    def reason(self, history, prospect):  # noqa: ARG002
        return self.name if self.fires else None


booleans = st.booleans()


@given(booleans, booleans)
def test_two_rules_joined_by_and_fire_when_both_do_and_give_both_reasons(first, second):
    reason = (Says("<a>", first) & Says("<b>", second)).reason(NOTHING_YET, None)
    assert (reason is not None) == (first and second)
    if reason is not None:
        assert "<a>" in reason
        assert "<b>" in reason


@given(booleans, booleans)
def test_two_rules_joined_by_or_fire_when_one_does_and_give_a_reason_that_holds(first, second):
    reason = (Says("<a>", first) | Says("<b>", second)).reason(NOTHING_YET, None)
    assert (reason is not None) == (first or second)
    if reason is not None:
        assert ("<a>" in reason) <= first
        assert ("<b>" in reason) <= second
        assert "<a>" in reason or "<b>" in reason


def test_two_rules_joined_by_or_that_both_fire_give_both_reasons():
    reason = (Says("<a>", True) | Says("<b>", True)).reason(NOTHING_YET, None)
    assert "<a>" in reason
    assert "<b>" in reason


trees = st.recursive(
    st.tuples(st.just("rule"), booleans),
    lambda inner: st.tuples(st.sampled_from(["&", "|"]), inner, inner),
    max_leaves=8,
)


@given(trees)
def test_rules_joined_to_any_depth_fire_as_logic_says_and_name_only_what_fired(tree):
    """A reason is a sufficient one: with only the rules it names firing, the whole still fires."""
    fired = {}

    def build(node):
        if node[0] == "rule":
            name = f"<{len(fired)}>"
            fired[name] = node[1]
            return Says(name, node[1]), node[1], lambda named, name=name: name in named
        (left, left_fires, left_holds), (right, right_fires, right_holds) = build(node[1]), build(node[2])
        if node[0] == "&":
            return left & right, left_fires and right_fires, lambda named: left_holds(named) and right_holds(named)
        return left | right, left_fires or right_fires, lambda named: left_holds(named) or right_holds(named)

    rule, fires, holds = build(tree)
    reason = rule.reason(NOTHING_YET, None)
    assert (reason is not None) == fires
    if reason is not None:
        named = {name for name in fired if name in reason}
        assert all(fired[name] for name in named)
        assert holds(named)


@pytest.mark.parametrize("join", [lambda a, b: a & b, lambda a, b: a | b, lambda a, b: b & a, lambda a, b: b | a])
def test_a_joined_rule_refuses_what_either_part_refuses(join):
    problem = problem_of(space_of(2), maximize="accuracy")
    with pytest.raises(InputError, match="accuracy"):
        join(AfterTrials(5), NotWorthItsPrice()).check(problem)
    join(AfterTrials(5), NotWorthItsPrice(10)).check(problem)


# --- little improvement


def prospect_of_scores(mean, variance, best=None, *limits, seconds=1.0, fraction=1.0):
    """Two configurations, one of them perhaps measured; the chosen candidate is the other."""
    space = space_of(2, [3600.0] * 2)
    quantities = {
        "score": (IDENTITY, gaussian_over(space, mean, variance)),
        "time": (LOG, gaussian_of_times(space, np.full(4, seconds))),
    }
    seen = [measurement(0, 0.5, score=DEEP_FLOOR, time=1.0, cost=1.0)]
    if best is not None:
        seen.append(measurement(0, fraction, score=best, time=1.0, cost=1.0))
    return Prospect(outlook_of(belief_of(problem_of(space, *limits), quantities, seen), [3]), 0)


@pytest.mark.parametrize(("mean", "fires"), [(10.999, True), (11.001, False), (5.0, True), (50.0, False)])
def test_little_improvement_fires_when_no_candidate_promises_a_tenth_of_the_best(mean, fires):
    """The best is 10 and the candidate is known to within 1e-6: it promises its lead."""
    prospect = prospect_of_scores(mean, 1e-12, 10.0)
    assert (LittleImprovement(0.1, after=1).reason(taking(1.0), prospect) is not None) == fires


@pytest.mark.parametrize(("share", "fires"), [(1.01, True), (0.99, False)])
def test_doubt_alone_is_a_promise(share, fires):
    """A candidate as good as the best, of deviation σ, promises σ φ(0): here exactly as much as the best."""
    deviation = 10.0 / norm.pdf(0.0)
    prospect = prospect_of_scores(10.0, deviation**2, 10.0)
    assert (LittleImprovement(share, after=1).reason(taking(1.0), prospect) is not None) == fires


@pytest.mark.parametrize(("cost", "fires"), [(0.901, True), (0.899, False)])
def test_for_a_cost_a_tenth_is_a_tenth_of_the_cost(cost, fires):
    """A sure saving from 1 USD to 0.9 is a tenth, although the model speaks of logarithms."""
    space = space_of(2, [3600.0] * 2, fractions=(1.0,))
    times = gaussian_of_times(space, np.array([1.0, cost]))
    belief = belief_of(
        problem_of(space, minimize="cost"), {"time": (LOG, times)}, [measurement(0, 1.0, time=1.0, cost=1.0)]
    )
    prospect = Prospect(outlook_of(belief, [1]), 0)
    assert (LittleImprovement(0.1, after=1).reason(taking(1.0), prospect) is not None) == fires


@pytest.mark.parametrize(("ran_before", "fires"), [(5, False), (6, True), (7, True)])
def test_little_improvement_waits_for_six_trials_that_ran(ran_before, fires):
    prospect = prospect_of_scores(0.0, 1e-12, 10.0)
    outcomes = [ran(number, 0, 1.0, score=1.0) for number in range(ran_before)]
    history = history_of(*outcomes, *(failed(ran_before + number, 1, 1.0) for number in range(3)))
    assert (LittleImprovement(0.1).reason(history, prospect) is not None) == fires


@pytest.mark.parametrize(
    "prospect",
    [
        None,
        prospect_of_scores(0.0, 1e-12),
        prospect_of_scores(0.0, 1e-12, 10.0, fraction=0.5),
        prospect_of_scores(0.0, 1e-12, 10.0, "score >= 20"),
    ],
    ids=["a design goes on", "nothing measured", "measured on less data", "measured beyond the limit"],
)
def test_little_improvement_waits_until_something_within_the_limits_is_measured(prospect):
    assert LittleImprovement(0.1, after=1).reason(taking(1.0), prospect) is None


def test_an_improvement_that_is_sure_to_break_a_limit_promises_nothing():
    promising = prospect_of_scores(1000.0, 1e-12, 10.0, "time <= 2s", seconds=1.0)
    hopeless = prospect_of_scores(1000.0, 1e-12, 10.0, "time <= 2s", seconds=3.0)
    assert LittleImprovement(0.1, after=1).reason(taking(1.0), promising) is None
    assert LittleImprovement(0.1, after=1).reason(taking(1.0), hopeless) is not None


# --- the value of knowing everything


def outlook_on_targets(means, covariance, *limits, times=None, floor=DEEP_FLOOR, seen=None, prices=None):
    """All of the data only; as many configurations as means."""
    space = space_of(len(means), prices, fractions=(1.0,))
    quantities = {"score": (IDENTITY, gaussian_over(space, means, covariance))}
    quantities["time"] = (LOG, gaussian_of_times(space, np.ones(len(means))) if times is None else times(space))
    seen = [measurement(0, 0.5, score=floor, time=1.0)] if seen is None else seen
    return outlook_of(belief_of(problem_of(space, *limits), quantities, seen))


@given(st.floats(-2.0, 2.0), st.floats(-2.0, 2.0), st.floats(0.01, 4.0), st.floats(0.01, 4.0))
def test_of_two_independent_gaussians_it_is_the_expected_maximum_less_the_greater_mean(x, y, x_variance, y_variance):
    """E[max(X, Y)] is x Φ(d/θ) + y Φ(-d/θ) + θ φ(d/θ) with d = x - y and θ² the sum of the variances.

    What is estimated is the lesser of E(X - Y)⁺ and E(Y - X)⁺, each a mean of samples of deviation below θ.
    """
    samples = 20_000
    theta, d = math.sqrt(x_variance + y_variance), x - y
    exact = x * norm.cdf(d / theta) + y * norm.cdf(-d / theta) + theta * norm.pdf(d / theta) - max(x, y)
    estimate = value_of_knowing_everything(outlook_on_targets([x, y], [x_variance, y_variance]), samples)
    assert estimate == pytest.approx(exact, abs=5.0 * theta / math.sqrt(samples))


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.9, 0.9999])
def test_what_two_contenders_share_is_not_worth_knowing(correlation):
    """θ² of their difference is 2 (1 - ρ)."""
    samples = 50_000
    theta = math.sqrt(2.0 * (1.0 - correlation))
    outlook = outlook_on_targets([0.0, 0.0], [[1.0, correlation], [correlation, 1.0]])
    # The factor's jitter adds 1e-6 to each variance.
    tolerance = 5.0 * theta / math.sqrt(samples) + math.sqrt(2e-6)
    assert value_of_knowing_everything(outlook, samples) == pytest.approx(theta * norm.pdf(0.0), abs=tolerance)


@given(st.floats(0.05, 0.95), st.floats(0.5, 5.0), st.floats(0.5, 5.0))
def test_of_one_contender_that_may_break_a_limit_it_is_what_the_fallback_saves(chance, doubtful, sure):
    """Worth known, feasibility not: p max(a, b) + (1 - p) b less max(p a, b)."""
    samples = 20_000

    def times(space):
        return gaussian_over(space, [-norm.ppf(chance), -50.0], [1.0, 0.0])

    outlook = outlook_on_targets([doubtful, sure], 1e-18, "time <= 1s", times=times, floor=0.0)
    exact = chance * max(doubtful, sure) + (1.0 - chance) * sure - max(chance * doubtful, sure)
    tolerance = 5.0 * max(doubtful, sure) * 0.5 / math.sqrt(samples) + 1e-6
    assert value_of_knowing_everything(outlook, samples) == pytest.approx(exact, abs=tolerance)


def test_when_everything_is_measured_there_is_nothing_to_know():
    seen = [measurement(x, 1.0, score=float(x), time=1.0) for x in range(3)]
    outlook = outlook_on_targets([0.0, 5.0, 2.0], 4.0, "time <= 1s", seen=seen)
    assert value_of_knowing_everything(outlook) == 0.0


def test_knowing_a_single_contender_is_worth_nothing():
    assert value_of_knowing_everything(outlook_on_targets([1.0], 4.0)) == 0.0


@settings(max_examples=20)
@given(seeds)
def test_no_single_trial_is_worth_more_than_knowing_everything(seed):
    """The value of perfect information bounds the knowledge gradient.

    Both are of Gaussians, whose maximum deviates by no more than the greatest of their deviations; and 60 roots are
    off at a kink by no more than (π²/60) / 8 of the movement times φ(0).
    """
    generator, samples, roots = np.random.default_rng(seed), 10_000, 60
    covariance = random_covariance(5, generator)
    outlook = outlook_on_targets(generator.normal(size=5), covariance)
    best = float(ValueOfRecommendation(roots).score(outlook).max())
    deviation = math.sqrt(float(np.diag(covariance).max()))
    slack = (
        5.0 * 2.0 * deviation / math.sqrt(samples) + 4.0 * math.pi**2 / roots / 8.0 * norm.pdf(0.0) * 2.0 * deviation
    )
    assert best <= value_of_knowing_everything(outlook, samples) + slack


def test_a_trial_that_tells_everything_is_worth_what_knowing_everything_is():
    """One contender in doubt, and no noise: its trial is perfect information. The bound is not a loose one."""
    samples, roots = 100_000, 100
    outlook = outlook_on_targets([0.0, 0.5], [1.0, 0.0])
    value = float(ValueOfRecommendation(roots).score(outlook)[0])
    exact = norm.pdf(0.5) - 0.5 * norm.sf(0.5)
    assert value == pytest.approx(exact, abs=math.pi**2 / roots / 8.0 * norm.pdf(0.0))
    assert value_of_knowing_everything(outlook, samples) == pytest.approx(exact, abs=5.0 / math.sqrt(samples))


@pytest.mark.parametrize("worst", [1.0, 1.2, 5.0])
def test_what_is_dearer_than_all_that_was_measured_may_still_be_worth_knowing(worst):
    """The least cost: 1 USD is proven, and another run costs e^z, z ~ N(0, 1), 1.65 USD in expectation.

    Knowing it is worth E(1 - e^z)⁺ = Φ(0) - e^½ Φ(-1), whatever the worst cost that was measured.
    """
    samples = 20_000
    space = space_of(3, [3600.0] * 3, fractions=(1.0,))
    times = gaussian_of_times(space, np.array([worst, 1.0, 1.0]), 1.0)
    seen = [measurement(x, 1.0, time=cost, cost=cost) for x, cost in ((0, worst), (1, 1.0))]
    outlook = outlook_of(belief_of(problem_of(space, minimize="cost"), {"time": (LOG, times)}, seen))
    exact = 0.5 - math.exp(0.5) * norm.cdf(-1.0)
    assert value_of_knowing_everything(outlook, samples) == pytest.approx(exact, abs=5.0 * 0.5 / math.sqrt(samples))


def test_whether_a_contender_runs_at_all_is_worth_knowing():
    """Worth 10 if it runs, with a chance p from a failure near it; 6 is proven: p 10 + (1 - p) 6 less max(p 10, 6)."""
    samples = 20_000
    space = space_of(2, fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [10.0, 6.0], 1e-18)),
        "time": (LOG, gaussian_of_times(space, np.ones(2))),
    }
    seen = [measurement(1, 1.0, score=6.0, time=1.0)]
    outlook = outlook_of(belief_of(problem_of(space), quantities, seen, failures=[(0, 0.5)]))
    p = float(outlook.belief.running_at_targets[0])
    exact = p * 10.0 + (1.0 - p) * 6.0 - max(p * 10.0, 6.0)
    assert 0.2 < p < 0.8
    assert value_of_knowing_everything(outlook, samples) == pytest.approx(exact, abs=5.0 * 5.0 / math.sqrt(samples))


# --- not worth its price


def priced_prospect(price=3.0):
    """Two contenders of deviation 1 at even odds, and a next trial of that price in USD."""
    return Prospect(outlook_on_targets([0.0, 0.0], 1.0, prices=[3600.0 * price] * 2), 1)


def test_it_fires_when_knowing_everything_is_worth_no_more_than_the_next_trial():
    prospect = priced_prospect(price=3.0)
    assert prospect.price == pytest.approx(3.0)
    even = prospect.price / value_of_knowing_everything(prospect.outlook)
    assert NotWorthItsPrice(even * (1.0 + 1e-9)).reason(NOTHING_YET, prospect) is None
    assert NotWorthItsPrice(even * 1e9).reason(NOTHING_YET, prospect) is None
    for worth in (even * (1.0 - 1e-9), even * 1e-9):
        assert "the next trial costs 3" in NotWorthItsPrice(worth).reason(NOTHING_YET, prospect)


def test_it_judges_the_trial_that_would_be_asked_and_no_other():
    outlook = outlook_on_targets([0.0, 0.0], 1.0, prices=[3600.0, 3600.0 * 50.0])
    between = 10.0 / value_of_knowing_everything(outlook)  # knowing everything is worth 10 USD
    assert NotWorthItsPrice(between).reason(NOTHING_YET, Prospect(outlook, 0)) is None
    assert NotWorthItsPrice(between).reason(NOTHING_YET, Prospect(outlook, 1)) is not None


def test_when_everything_is_measured_no_trial_is_worth_its_price():
    seen = [measurement(x, 1.0, score=float(x), time=1.0, cost=1.0) for x in range(2)]
    outlook = outlook_on_targets([0.0, 1.0], 1.0, seen=seen, prices=[3600.0] * 2)
    assert NotWorthItsPrice(1e12).reason(NOTHING_YET, Prospect(outlook, 0)) is not None


@pytest.mark.parametrize(("limit", "stops"), [("time <= 0.99s", False), ("time <= 1.01s", True)])
def test_as_long_as_nothing_seems_feasible_it_never_stops(limit, stops):
    """Every run takes a second: a model that is sure that all break the limit sees no gain, and has no answer."""
    outlook = outlook_on_targets([0.0, 0.0], 1.0, limit, prices=[3600.0] * 2)
    reason = NotWorthItsPrice(1e-12).reason(NOTHING_YET, Prospect(outlook, 0))
    assert (reason is not None) is stops


def test_it_does_not_judge_a_design():
    assert NotWorthItsPrice(1e-12).reason(NOTHING_YET, None) is None


def test_it_does_not_take_seconds_for_dollars():
    """Where neither prices nor costs are known a trial has no price in USD to compare with."""
    prospect = Prospect(outlook_on_targets([0.0, 0.0], 1.0, seen=[measurement(0, 0.5, score=-9.0, time=1.0)]), 0)
    assert prospect.outlook.belief.effort_metric == "time"
    with pytest.raises(InputError, match="price"):
        NotWorthItsPrice(1e-6).reason(NOTHING_YET, prospect)


@pytest.mark.parametrize("metric", ["accuracy", "score"])
def test_it_refuses_a_goal_that_is_no_money_unless_told_what_it_is_worth(metric):
    problem = problem_of(space_of(2), maximize=metric)
    with pytest.raises(InputError, match=rf"{metric} is worth.*NotWorthItsPrice\(worth="):
        NotWorthItsPrice().check(problem)
    NotWorthItsPrice(100).check(problem)
    NotWorthItsPrice().check(problem_of(space_of(2), minimize="cost"))


def test_a_cost_is_worth_itself():
    """Two runs at about a dollar, of which one may save some: worth that much once, and a thousand times as much."""
    space = space_of(2, [3600.0] * 2, fractions=(1.0,))
    times = gaussian_of_times(space, np.ones(2), 0.25)
    seen = [measurement(0, 0.5, time=9.0, cost=9.0)]
    outlook = outlook_of(belief_of(problem_of(space, minimize="cost"), {"time": (LOG, times)}, seen))
    prospect = Prospect(outlook, 0)
    assert NotWorthItsPrice().reason(NOTHING_YET, prospect) == NotWorthItsPrice(1.0).reason(NOTHING_YET, prospect)
    assert NotWorthItsPrice().reason(NOTHING_YET, prospect) is not None
    assert NotWorthItsPrice(1000).reason(NOTHING_YET, prospect) is None


# --- in a study


def train(configuration):
    x = configuration["x"]
    return {"accuracy": 0.9 - 0.01 * (x - 4) ** 2, "time": 100.0 + 10.0 * x}


def study_with(stop, method="eic", maximize="accuracy", **more):
    space = Space.from_configs([{"x": x} for x in range(10)], price_per_hour=[36.0] * 10, fractions=(1.0,))
    return Study(space, maximize=maximize, method=method, stop=stop, seed=1, **more)


def run_until_over(study, at_most=12):
    """The message that ended the search, and how many trials were made."""
    for made in range(at_most):
        try:
            asked = study.ask()
        except SearchOver as over:
            return str(over), made
        study.tell(asked, **train(asked.config))
    return None, at_most


@pytest.mark.parametrize("method", ["eic", "random", "trimtuner", "nephele"])
def test_a_study_stops_with_the_reason_and_still_recommends(method):
    study = study_with(AfterTrials(5), method)
    message, made = run_until_over(study)
    assert made == 5
    assert "5 of 5 trials are made" in message
    assert study.recommend().config in [{"x": x} for x in range(10)]
    with pytest.raises(SearchOver, match="5 of 5"):
        study.ask()


def test_a_study_counts_trials_under_way():
    study = study_with(AfterTrials(2))
    first = study.ask()
    study.ask()
    with pytest.raises(SearchOver, match="2 of 2"):
        study.ask()
    study.tell(first, **train(first.config))
    assert study.recommend().config == first.config


def test_a_study_stops_after_money_and_after_time():
    """A cent a second: trials of 100 to 190 seconds cost 1 to 1.9 USD."""
    message, made = run_until_over(study_with(AfterMoney(3.0)))
    assert 2 <= made <= 3
    assert "of 3 USD are spent" in message
    message, made = run_until_over(study_with(AfterTime("5min")))
    assert 2 <= made <= 3
    assert "of 300 seconds" in message


def test_a_study_stops_when_trials_are_not_worth_their_price_but_not_before_its_design_is_done():
    message, made = run_until_over(study_with(NotWorthItsPrice(worth=1e-6)))
    assert made == 4  # eic starts with a design of four
    assert "knowing everything would be worth" in message
    message, made = run_until_over(study_with(NotWorthItsPrice(worth=1e9)), at_most=6)
    assert (message, made) == (None, 6)


def test_a_study_stops_when_little_improvement_is_promised():
    study = study_with(LittleImprovement(share=0.999, after=5))
    message, made = run_until_over(study)
    assert made == 5
    assert "no trial promises more than" in message
    assert study.recommend().config is not None


def test_a_rule_joins_that_of_the_method():
    """CherryPick stops by itself when little is promised; a rule of the user's stops it earlier."""
    message, made = run_until_over(study_with(AfterTrials(3), method="cherrypick"))
    assert (made, "3 of 3" in message) == (3, True)
    message, made = run_until_over(study_with(AfterTrials(9), method="cherrypick:stop_below=0.999"))
    assert 6 <= made < 9
    assert "promises" in message


def test_optimize_ends_with_the_rule():
    study = study_with(AfterTrials(3))
    recommendation = study.optimize(lambda config, fraction: train(config), trials=8)  # noqa: ARG005
    assert len(study.history.outcomes) == 3
    assert recommendation is not None


def test_a_study_refuses_a_rule_that_cannot_judge_its_goal_before_any_trial():
    with pytest.raises(InputError, match="what accuracy is worth"):
        study_with(AfterTrials(3) | NotWorthItsPrice())
    with pytest.raises(InputError, match="AfterTrials"):
        study_with("3 trials")


def test_a_prospect_costs_what_the_chosen_candidate_is_expected_to():
    outlook = outlook_on_targets([0.0, 0.0], 1.0, prices=[3600.0, 7200.0])
    assert [Prospect(outlook, one).price for one in range(2)] == pytest.approx([1.0, 2.0])
    assert Prospect(replace(outlook, left=5.0), 1).price == pytest.approx(2.0)
