"""Every attempt as a bar, and every trial as a row."""

from decisions.fakes import failed, history_of, problem_of, ran, space_of, trial
from trimtuner.problem.history import Measurement, Outcome
from trimtuner.views import timeline as timeline_view
from trimtuner.views.blocks import html_of
from trimtuner.views.timeline import timeline
from trimtuner.views.trials import VIEW, rows, trials_table
from views.showing import attempt, subject_of

SPACE = space_of(4, prices=[1.0] * 4)
HISTORY = history_of(ran(0, 0, 1.0, score=1.0, time=5.0, cost=0.5), failed(1, 1, 1.0), pending=[trial(2, 2, 0.5)])
ATTEMPTS = (
    attempt(0, 100.0, 102.0, 110.0, 0.2, failed="preempted"),
    attempt(0, 110.0, 111.0, 120.0, 0.3, number=2),
    attempt(1, 103.0, 104.0, 105.0, 0.1, failed="oom"),
    attempt(2, 121.0, None, None, reserve=2.5),
)


def shown():
    return subject_of(problem_of(SPACE), HISTORY, attempts=ATTEMPTS, now=150.0)


def test_a_bar_goes_from_its_start_to_its_end_and_says_how_it_ended_and_what_it_cost():
    bars = timeline(shown())
    assert [(bar.begin, bar.end) for bar in bars] == [(2.0, 10.0), (11.0, 20.0), (4.0, 5.0), (21.0, 50.0)]
    assert [bar.state for bar in bars] == ["preempted", "ok", "oom", "running"]
    assert [bar.usd for bar in bars] == [0.2, 0.3, 0.1, 2.5]
    assert "4 attempts at trials: 1 preempted, 1 ok, 1 oom, 1 running." in timeline_view.VIEW.html(shown())


def test_in_memory_one_bar_follows_the_other():
    bars = timeline(subject_of(problem_of(SPACE), HISTORY))
    assert [(bar.begin, bar.end, bar.state) for bar in bars] == [(0.0, 5.0, "ok"), (5.0, 6.0, "oom")]


def test_a_row_has_the_last_attempts_number_and_its_final_metrics():
    found = rows(shown())
    assert [(row.trial, row.state, row.attempts) for row in found] == [(0, "ok", 2), (1, "oom", 1), (2, "running", 1)]
    assert found[0].metrics["score"] == 1.0
    assert (found[2].cost, found[2].metrics) == (None, {})


def test_what_was_measured_on_the_way_is_a_snapshot_even_when_the_trial_failed():
    own = trial(0, 0, 1.0, (0.5,))
    early = Measurement({"x": 0}, 0.5, {"score": 0.5})
    outcome = Outcome(own, (early,), "oom", 0.5, 3.0)
    (row,) = rows(subject_of(problem_of(SPACE), history_of(outcome)))
    assert (row.metrics, row.snapshots) == ({}, ((0.5, {"score": 0.5}),))


def test_the_metrics_of_the_table_are_the_goal_and_the_limits_but_cost_and_time_once():
    def heads(problem):
        return trials_table(subject_of(problem, HISTORY), ()).heads

    assert heads(problem_of(SPACE, "cost <= 1", "recall >= 0.5"))[2:6] == ["score", "recall", "cost", "time"]
    assert heads(problem_of(SPACE, "recall >= 0.5", minimize="cost"))[2:5] == ["recall", "cost", "time"]


def test_where_no_money_is_counted_no_table_has_a_column_of_costs():
    free = subject_of(problem_of(space_of(4)), history_of(ran(0, 0, 1.0, score=1.0, time=5.0)))
    assert "cost" not in trials_table(free, rows(free)).heads
    page = VIEW.html(free)
    assert ">cost<" not in page
    assert f"colspan='{len(trials_table(free, ()).heads)}'" in html_of(VIEW.shown_in_report(free))
    assert ">cost<" in VIEW.html(shown())
