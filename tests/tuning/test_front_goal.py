"""A goal of two metrics: the front as users take it, and a search that looks all along it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimtuner as tt
from decisions.fakes import KnownSurrogate, gaussian_of_times, gaussian_over, history_of, problem_of, ran, space_of
from trimtuner.decisions.stopping import Stop
from trimtuner.problem.history import History
from trimtuner.tuning import tuner
from trimtuner.tuning.pareto import Front, price_sought
from trimtuner.tuning.recipes import METHODS, TRIMTUNER, recipe_named
from trimtuner.tuning.recommendation import Estimate, Recommendation

SERVING = {"trimtuner", "trimtuner-gp", "trimtuner-dt", "eic", "eic-usd", "random"}
VMS = {"slow": tt.VM(1, 2, 0.1), "fast": tt.VM(4, 8, 0.8)}


def space(**settings):
    return tt.Space({"units": tt.Choice([1, 2, 4, 8])}, cloud=tt.Cloud(VMS), fractions=[0.1, 1.0], **settings)


def train(config, fraction):
    """More units are better and dearer; the fast machine is five times as fast and eight times as dear."""
    seconds = 100.0 * config["units"] * fraction / (5.0 if config["vm_type"] == "fast" else 1.0)
    return {"accuracy": 0.9 - 0.4 * fraction**-0.1 / config["units"], "time": seconds, "latency_ms": config["units"]}


def study(method="trimtuner-dt", trials=0, **changes):
    made = tt.Study(space(), **{"maximize": "accuracy", "minimize": "cost", **changes}, method=method)
    if trials:
        made.optimize(train, trials)
    return made


def recommendation(price):
    return Recommendation({"x": price}, 1.0, {"cost": Estimate(price, price, price)}, {}, 1.0, True)


def front_at(prices):
    found = tuple(recommendation(price) for price in prices)
    return Front("cost", "accuracy", found, tuple(prices), tuple(range(len(prices))), 0)


@given(st.sets(st.integers(1, 50), min_size=1), st.integers(1, 60), st.integers(0, 20))
def test_a_higher_limit_never_gets_less_and_what_is_named_is_within_it(prices, limit, more):
    front = front_at(sorted(prices))
    if limit < min(prices):
        with pytest.raises(tt.NoAnswer, match="the cheapest on the front is at"):
            front.within(limit)
        return
    named, better = front.within(limit), front.within(limit + more)
    assert named.cost <= limit
    assert front.points.index(better) >= front.points.index(named)
    assert not any(named.cost < point.cost <= limit for point in front)


def test_a_limit_may_be_a_text_with_its_unit():
    assert front_at([0.05, 0.5]).within("40 cents").cost == 0.05
    with pytest.raises(tt.InputError, match="unknown unit"):
        front_at([0.05]).within("3 pounds")


@pytest.mark.parametrize("limit", [None, True, float("nan"), [1.0]])
def test_a_limit_that_is_no_number_is_refused(limit):
    with pytest.raises(tt.InputError, match="it takes the most that a run may cost"):
        front_at([0.05]).within(limit)


def test_a_study_that_measured_everything_has_the_true_front_and_recommends_its_knee():
    made = study("random", trials=8)
    front = made.front()
    # The slow machine is cheaper for the same accuracy, so the front is its four sizes.
    assert [dict(point.config) for point in front] == [
        {"units": units, "vm_type": "slow", "vm_count": 1} for units in (1, 2, 4, 8)
    ]
    accuracies = [train(point.config, 1.0)["accuracy"] for point in front]
    assert list(front.qualities) == pytest.approx(accuracies)
    # On the scaled axes: x = 0, 1/3, 2/3, 1 and y = 0, 4/7, 6/7, 1, so the second lies highest above the line.
    assert front.knee is front[1]
    assert made.recommend() == front.knee
    assert front.within(100.0 * 4 * 0.1 / 3600 + 1e-9) is front[2]


def test_the_figures_of_a_forecast_are_the_unfavourable_ends_of_its_intervals():
    front = study("trimtuner", trials=3).front()  # its first trials are all on the smallest fraction
    predicted = [place for place, point in enumerate(front) if not point.is_measured]
    assert predicted
    for place in predicted:
        assert front.prices[place] == pytest.approx(front[place].cost.high, rel=1e-3)
        assert front.qualities[place] == pytest.approx(front[place].accuracy.low, rel=1e-3)


def test_constraints_hold_for_every_point_of_the_front():
    front = study("random", trials=8, constraints=["latency_ms <= 3"]).front()
    assert [point.config["units"] for point in front] == [1, 2]


def test_the_price_may_be_any_metric():
    front = study("random", trials=8, minimize="latency_ms").front()
    assert front.prices == (1, 2, 4, 8)


def test_a_study_with_one_goal_has_a_front_against_cost_for_nothing():
    made = study("random", trials=8, minimize=None)
    assert [point.config["units"] for point in made.front()] == [1, 2, 4, 8]
    assert made.recommend().config["units"] == 8


def test_where_nothing_is_traded_or_feasible_there_is_no_front():
    with pytest.raises(tt.NoAnswer, match="nothing to trade"):
        study("random", trials=2, maximize=None).front()
    nothing = study("random", trials=8, constraints=["latency_ms <= 0.5"])
    with pytest.raises(tt.NoAnswer, match="no front yet"):
        nothing.front()
    assert not nothing.recommend().is_feasible


def test_a_front_is_shown_as_text_with_its_knee_and_hostile_names_stay_text():
    front = study("random", trials=8).front()
    knee = next(line for line in str(front).splitlines() if "knee" in line)
    assert "units=2" in knee
    hostile = Front("<b>", "y", (recommendation(1),), (1.0,), (2.0,), 0)
    assert "<b>" not in hostile._repr_html_()


@pytest.mark.parametrize("method", METHODS)
def test_methods_that_know_one_goal_say_so_and_the_others_serve(method):
    if method in SERVING:
        assert study(method, trials=4).front()
    else:
        with pytest.raises(tt.InputError, match="knows one goal, not accuracy against cost"):
            study(method)


@pytest.mark.parametrize("method", ["trimtuner-dt", "eic"])
def test_the_same_history_and_seed_give_the_same_trial(method):
    made = study(method, trials=5)
    history = made.history
    assert made.ask() == tuner.ask(made.problem, made.recipe, history, made.seed)


def known_recipe(problem, stop=None):
    """Of four configurations, times 10 to 80 seconds at a dollar a second; the dearer the better, and all is sure."""
    seconds = np.array([1.0, 2.0, 4.0, 8.0, 10.0, 20.0, 40.0, 80.0])
    shares = gaussian_over(problem.space, [-2.0, -1.0, 0.0, 1.0] * 2, 1e-6)
    surrogate = KnownSurrogate(shares, gaussian_of_times(problem.space, seconds, 1e-6))
    return TRIMTUNER.but(surrogate=surrogate, quality_growth=0.0, **({} if stop is None else {"stop": stop}))


def known_problem():
    return problem_of(space_of(4, prices=[3600.0] * 4), maximize="accuracy", against="cost")


def some_history(count=3) -> History:
    return history_of(*(ran(n, n, 0.5, accuracy=0.5, time=2.0**n, cost=2.0**n) for n in range(count)))


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_each_trial_looks_at_a_price_between_the_cheapest_and_beyond_the_dearest(number):
    problem = known_problem()
    recipe = known_recipe(problem)
    belief = tuner.believe(problem, recipe, some_history(), 0)
    price = price_sought(recipe, belief, number)
    assert 10.0 * 0.99 <= price <= 80.0 * 8.0**0.2


def test_a_goal_of_one_metric_looks_at_no_price():
    problem = problem_of(space_of(4, prices=[3600.0] * 4), maximize="accuracy")
    recipe = known_recipe(problem)
    assert price_sought(recipe, tuner.believe(problem, recipe, some_history(), 0), 3) is None


class EnoughBelow(Stop):
    """Enough where the dearest price in question is below a limit; it remembers the prices."""

    def __init__(self, limit):
        self.limit, self.prices = limit, []

    def reason(self, history, prospect):  # noqa: ARG002
        if prospect is None:
            return None
        self.prices.append(prospect.outlook.belief.problem.constraints[-1].limit)
        return "enough" if self.prices[-1] < self.limit else None


def test_a_search_for_every_price_is_over_when_it_is_over_at_each():
    problem = known_problem()
    stop = EnoughBelow(1e9)
    with pytest.raises(tt.SearchOver, match="enough"):
        tuner.ask(problem, known_recipe(problem, stop), some_history(), 0)
    assert min(stop.prices) == pytest.approx(10.0, rel=0.01)
    assert max(stop.prices) >= 80.0 * 0.99
    assert tuner.ask(problem, known_recipe(problem, EnoughBelow(60.0)), some_history(), 0).origin == "model"


def test_in_a_space_that_cannot_be_listed_neighbours_of_the_cheap_and_of_the_best_are_in_play():
    space = tt.Space({"x": tt.Float(0.0, 1.0)}, fractions=[1.0])
    made = tt.Study(space, maximize="accuracy", minimize="latency_ms", method="trimtuner-dt")
    for _ in range(6):
        trial = made.ask()
        x = trial.config["x"]
        made.tell(trial, accuracy=0.2 + 0.6 * x, latency_ms=1.0 + x, time=1.0)
    anchors = tuner._best_measured(made.problem, made.history)
    tested = sorted(configuration["x"] for configuration, _ in made.history.tested())
    assert {tested[0], tested[-1]} <= {one["x"] for one in anchors}  # all are on the front


def test_definitions_of_studies_with_one_goal_are_as_they_were():
    one = study(minimize=None)
    assert one.description.plain["goal"] == {"maximize": "accuracy"}
    assert study().description.plain["goal"] == {"maximize": "accuracy", "minimize": "cost"}
    loss = study(maximize=None, minimize=["cost", "loss"])
    assert loss.description.plain["goal"] == {"minimize": ["loss", "cost"]}


@pytest.mark.parametrize("method", ["random", "trimtuner"])
def test_a_loss_has_the_front_of_the_accuracy_that_it_is_the_rest_of(method):
    """With loss = 1 - accuracy measured everywhere, the two ask for the same."""

    def train_loss(config, fraction):
        told = train(config, fraction)
        return {"loss": 1.0 - told.pop("accuracy"), **told}

    loss = tt.Study(space(), minimize=["loss", "cost"], method=method)
    loss.optimize(train_loss, trials=16)
    of_loss, of_accuracy = loss.front(), study(method, trials=16).front()
    assert [point.config for point in of_loss] == [point.config for point in of_accuracy]
    assert list(of_loss.qualities) == pytest.approx([1.0 - one for one in of_accuracy.qualities])
    assert of_loss.knee_position == of_accuracy.knee_position
    assert loss.recommend() == of_loss.knee
    assert of_loss.within(of_loss.prices[0]) is of_loss[0]
    assert loss.plot("tradeoff")


def test_time_must_be_told_where_it_is_the_price():
    made = tt.Study(tt.Space({"x": tt.Choice([1, 2])}), maximize="accuracy", minimize="time", method="random")
    with pytest.raises(tt.InputError, match="reports no time="):
        made.tell(made.ask(), accuracy=0.5, cost=1.0)


def test_a_lookahead_serves_too():
    assert recipe_named("trimtuner:horizon=1").check(known_problem()) is None
