"""Goal, constraints, units and budget: what the user's words mean."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trimtuner as tt
from trimtuner.problem.problem import Constraint, Goal, Problem, is_share, parse_quantity

SPACE = tt.Space({"a": tt.Choice([1, 2])}, fractions=[0.1, 0.5, 1])


def problem(maximize="accuracy", minimize=None, constraints=(), budget=None):
    return Problem.of(SPACE, maximize, minimize, constraints, budget)


@pytest.mark.parametrize(
    ("text", "metric", "is_upper", "limit"),
    [
        ("cost <= 0.1", "cost", True, 0.1),
        ("cost <= 0.10 USD", "cost", True, 0.10),
        ("cost<=0.10usd", "cost", True, 0.10),
        ("cost <= 0.10$", "cost", True, 0.10),
        ("cost <= 25 cents", "cost", True, 0.25),
        ("time <= 20min", "time", True, 1200.0),
        ("time <= 20 minutes", "time", True, 1200.0),
        ("time <= 300", "time", True, 300.0),
        ("time <= 300 s", "time", True, 300.0),
        ("time < 1.5h", "time", True, 5400.0),
        ("time <= 12 hours", "time", True, 43200.0),
        ("time <= 2d", "time", True, 172800.0),
        ("time <= 250ms", "time", True, 0.25),
        ("latency_ms <= 40", "latency_ms", True, 40.0),
        ("accuracy >= 0.85", "accuracy", False, 0.85),
        ("accuracy>.85", "accuracy", False, 0.85),
        ("loss <= -1.5e-3", "loss", True, -0.0015),
        ("  memory_gib   <=  8  ", "memory_gib", True, 8.0),
        ("accuracy_percent >= 85", "accuracy_percent", False, 85.0),
    ],
)
def test_a_constraint_is_read_in_seconds_and_dollars(text, metric, is_upper, limit):
    constraint = Constraint.parse(text)
    assert (constraint.metric, constraint.is_upper) == (metric, is_upper)
    assert constraint.limit == pytest.approx(limit)
    assert constraint.text == text.strip()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("cost", "not of the form"),
        ("", "not of the form"),
        ("<= 3", "not of the form"),
        ("cost = 3", "not of the form"),
        ("cost == 3", "not of the form"),
        ("3 <= cost", "not of the form"),
        ("cost <= ", "is not a number"),
        ("cost <= cheap", "is not a number"),
        ("cost <= 1 2", "is not a number"),
        ("cost <= 1 <= 2", "is not a number"),
        ("cost <= nan", "is not a number"),
        ("cost <= 1e999", "is not finite"),
        ("time <= 20 mins", r"unknown unit 'mins'; time takes .*did you mean 'min'\?"),
        ("time <= 3 USD", "unknown unit 'USD'; time takes"),
        ("cost <= 3 EUR", "unknown unit 'EUR'; cost takes usd"),
        ("cost <= 3 min", "unknown unit 'min'; cost takes usd"),
        ("latency_ms <= 40ms", "unknown unit 'ms'; latency_ms takes no unit"),
        ("accuracy >= 85%", "is not a number"),
        ("cost <= 0", "can never hold"),
        ("time <= -5min", "can never hold"),
        ("accuracy >= 85", "outside 0 to 1, but accuracy is a share"),
        ("val_accuracy >= -0.5", "outside 0 to 1"),
    ],
)
def test_a_constraint_that_cannot_be_meant_is_refused(text, complaint):
    with pytest.raises(tt.InputError, match=complaint):
        Constraint.parse(text)


@pytest.mark.parametrize("wrong", [3, None, ("cost", "<=", 1), b"cost <= 1", ["cost <= 1"]])
def test_a_constraint_that_is_no_text_is_refused(wrong):
    with pytest.raises(tt.InputError, match="a constraint is a text such as"):
        Constraint.parse(wrong)


@given(
    st.floats(1e-6, 1e6),
    st.sampled_from([("s", 1), ("min", 60), ("h", 3600), ("d", 86400), ("ms", 1e-3), ("", 1)]),
    st.sampled_from(["", " ", "  "]),
)
def test_a_quantity_is_its_number_times_its_unit(number, unit, gap):
    name, seconds = unit
    assert parse_quantity("time", f"{number!r}{gap}{name}", "here") == pytest.approx(number * seconds)
    assert parse_quantity("latency", repr(number), "here") == number


@given(st.text(max_size=20), st.sampled_from(["", "cost <= ", "time >= ", "x < "]))
def test_any_text_is_a_constraint_or_an_input_error(text, start):
    try:
        constraint = Constraint.parse(start + text)
    except tt.InputError:
        return
    assert math.isfinite(constraint.limit)
    assert constraint.metric.isidentifier()


@given(st.floats(-10, 10), st.floats(-10, 10))
def test_a_limit_itself_is_within_the_limit(value, limit):
    assert Constraint("x", True, limit, "").is_met(value) == (value <= limit)
    assert Constraint("x", False, limit, "").is_met(value) == (value >= limit)


def test_the_sign_of_a_goal_says_which_way_is_better():
    assert Goal("accuracy", "maximize").sign == 1.0
    assert Goal("cost", "minimize").sign == -1.0


def test_a_problem_keeps_goal_constraints_and_budget():
    made = problem(constraints=["cost <= 0.1", "time <= 20min", "latency_ms <= 40"], budget=25)
    assert made.goal == Goal("accuracy", "maximize")
    assert [constraint.limit for constraint in made.constraints] == [0.1, 1200.0, 40.0]
    assert made.budget == 25.0


def test_cost_and_time_need_not_be_reported_but_every_other_metric_does():
    made = problem(constraints=["cost <= 0.1", "time <= 20min", "latency_ms <= 40", "latency_ms >= 1"])
    assert made.reported_metrics == ("accuracy", "latency_ms")
    assert problem(None, "cost", ["accuracy >= 0.8"]).reported_metrics == ("accuracy",)


def test_goal_and_constraints_are_meant_at_full_data_unless_the_least_cost_or_time_is_wanted():
    assert problem().target_fractions == (1.0,)
    assert problem(None, "loss").target_fractions == (1.0,)
    assert problem(None, "cost").target_fractions == (0.1, 0.5, 1.0)
    assert problem(None, "time").target_fractions == (0.1, 0.5, 1.0)


def test_money_matters_when_goal_constraint_or_budget_speaks_of_it():
    assert not problem(constraints=["time <= 3"]).names_cost
    assert problem(constraints=["cost <= 3"]).names_cost
    assert problem(None, "cost").names_cost
    assert problem(budget=1).names_cost


def test_limits_that_touch_are_no_contradiction():
    problem(constraints=["latency_ms <= 40", "latency_ms >= 40"])
    problem(constraints=["cost <= 1", "cost <= 2", "time >= 5"])


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: problem(None), "give a goal"),
        (lambda: problem("accuracy", "accuracy"), "cannot be both large and small"),
        (lambda: problem("time", "cost"), "time is to be small"),
        (lambda: problem("accuracy", ["loss", "cost"]), "3 metrics are no goal"),
        (lambda: problem(None, ["loss", "size", "cost"]), "3 metrics are no goal"),
        (lambda: problem(None, []), "0 metrics are no goal"),
        (lambda: problem(None, ["time", "cost"]), "both paid"),
        (lambda: problem(None, ["loss", "loss"]), "'loss' against itself"),
        (lambda: problem(None, ["cost", "cost"]), "both paid"),
        (lambda: problem(None, ["loss", "2 much"]), "no name for a metric"),
        (lambda: problem(None, [3, "cost"]), "no name for a metric"),
        (lambda: problem(""), "no name for a metric"),
        (lambda: problem(3), "no name for a metric"),
        (lambda: problem("top 5"), "no name for a metric"),
        (lambda: problem(constraints="cost <= 1"), r"write a list: constraints=\['cost <= 1'\]"),
        (lambda: problem(constraints=None), "must be a list of texts"),
        (lambda: problem(constraints=3), "must be a list of texts"),
        (lambda: problem(constraints=[3]), "a constraint is a text"),
        (lambda: problem(constraints=["x <= 1", "x >= 2"]), "'x <= 1' and 'x >= 2' cannot both hold"),
        (lambda: problem(constraints=["time >= 2min", "time <= 100s"]), "cannot both hold"),
        (lambda: problem(budget=0), "must be an amount of USD above 0"),
        (lambda: problem(budget=-1), "must be an amount of USD above 0"),
        (lambda: problem(budget=math.nan), "must be an amount of USD above 0"),
        (lambda: problem(budget=math.inf), "must be an amount of USD above 0"),
        (lambda: problem(budget="25"), "must be an amount of USD above 0"),
        (lambda: problem(budget=True), "must be an amount of USD above 0"),
        (lambda: Problem.of({"a": [1]}, "accuracy", None, [], None), "needs a tt.Space"),
    ],
)
def test_a_problem_that_makes_no_sense_is_refused(make, complaint):
    with pytest.raises(tt.InputError, match=complaint):
        make()


@pytest.mark.parametrize(
    ("minimize", "goal"),
    [
        (["loss", "cost"], Goal("loss", "minimize", "cost")),
        (("time", "loss"), Goal("loss", "minimize", "time")),  # what is paid is known by its name
        (["loss", "latency_ms"], Goal("loss", "minimize", "latency_ms")),
        (["loss"], Goal("loss", "minimize")),
    ],
)
def test_two_metrics_to_be_small_are_traded_for_money_or_time_or_the_last(minimize, goal):
    assert problem(None, minimize).goal == goal


@pytest.mark.parametrize(
    "goal",
    [
        Goal("accuracy", "maximize"),
        Goal("accuracy", "maximize", "cost"),
        Goal("loss", "minimize"),
        Goal("loss", "minimize", "size"),
    ],
)
def test_a_goal_in_a_users_words_is_that_goal(goal):
    assert problem(goal.maximized, goal.minimized).goal == goal


def test_metrics_that_are_shares_are_known_by_their_names():
    assert all(map(is_share, ["accuracy", "val_accuracy", "accuracy_top5", "test_acc", "roc_auc", "f1", "recall"]))
    assert not any(map(is_share, ["loss", "accuracy_percent", "pct_accuracy", "inaccuracy", "latency_ms", "account"]))


# --- when a run is stopped


@pytest.mark.parametrize(
    ("constraints", "price", "seconds"),
    [
        (["time <= 10min"], None, 720.0),
        (["cost <= 1 USD"], 2.0, 0.6 * 3600.0),  # half an hour is paid for with it
        (["cost <= 1 USD", "time <= 10min"], 2.0, 720.0),
        (["cost <= 1 USD"], None, math.inf),
        (["cost <= 1 USD"], 0.0, math.inf),  # what is free never costs too much
        (["accuracy >= 0.5"], 2.0, math.inf),
        ([], 2.0, math.inf),
    ],
)
def test_a_run_is_stopped_a_fifth_over_the_tighter_limit_on_cost_or_time(constraints, price, seconds):
    assert problem(constraints=constraints).seconds_until_stopped(price) == pytest.approx(seconds)


def test_where_limits_are_kept_on_any_share_of_the_data_none_stops_a_run():
    least = problem(maximize=None, minimize="cost", constraints=["time <= 10min"])
    assert least.seconds_until_stopped(2.0) == math.inf


@pytest.mark.parametrize(
    ("constraints", "ended_within", "worst"),
    [
        (["cost <= 1 USD"], 36.0, 1.2 + 0.02),  # at 2 USD an hour: a fifth over, and 36 s to end it
        (["time <= 10min"], 36.0, (720.0 + 36.0) * 2.0 / 3600.0),
        (["cost <= 100 USD"], 36.0, 2.0 + 0.02),  # the limit of a trial, an hour and 36 s, is sooner
        (["cost <= 1 USD"], None, 2.0 + 0.02),
        ([], 36.0, 2.0 + 0.02),
    ],
)
def test_a_trial_costs_at_worst_what_it_does_until_it_is_ended_by_its_limit_or_by_one_on_cost_or_time(
    constraints, ended_within, worst
):
    limited = replace(problem(constraints=constraints), trial_limit=3636.0, ended_within=ended_within)
    assert limited.worst_cost(2.0) == pytest.approx(worst)
