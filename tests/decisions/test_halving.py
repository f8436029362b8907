"""Hyperband and BOHB: brackets read off the history, whatever else is in it and in whichever order it was told.

With K = 3 rungs and η = 3 the formula of the paper, ⌈K/(K-b)·η^(K-1-b)⌉ drawn at rung b and one in η kept, gives
brackets of 9-3-1, 5-1 and 3 trials.
"""

import itertools
import math
from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decisions.fakes import IDENTITY, LOG, belief_of, gaussian_over, measurement, outlook_of, problem_of, space_of
from trimtuner.decisions.halving import Bohb, DropUnderperformers, Hyperband
from trimtuner.problem.history import PREEMPTED, History, Measurement, Outcome, Trial
from trimtuner.problem.parameters import Choice, Float, Int
from trimtuner.problem.space import Space
from trimtuner.tuning.tuner import pool_for

PAPER = (1 / 60, 0.1, 0.25, 0.5, 1.0)
THREE = (0.1, 0.5, 1.0)
DRAWN_AT_THREE = [0.1] * 9 + [0.5] * 5 + [1.0] * 3
MANY = Space({"x": Int(0, 19_999)}, fractions=THREE)  # so many that hardly any is drawn twice
SOME = space_of(40, fractions=THREE)
DESIGNS = [Hyperband(), Bohb()]
seeds = st.integers(0, 10_000)
few = settings(max_examples=15, deadline=None)


def score_of(trial):
    """Distinct values in an order that changes from fraction to fraction."""
    return math.sin(1.7 * trial.config["x"] + 9.0 * trial.fraction)


def never_fails(_):
    return None


def next_trial(design, problem, history, seed=0):
    pool = pool_for(problem, history, seed)
    step = design.next_step(problem, pool, history, seed)
    if step is None:
        return None
    return Trial(history.next_number, pool.configuration(step.position), step.fraction, step.snapshots, "design")


def success(trial, **metrics):
    return Outcome(trial, (Measurement(trial.config, trial.fraction, {"time": 1.0, **metrics}),), None, 0.0, 1.0)


def failure(trial, kind):
    return Outcome(trial, (), kind, 0.0, 1.0)


def outcome_of(trial, score=score_of, kind_of=never_fails):
    kind = kind_of(trial)
    return success(trial, score=score(trial)) if kind is None else failure(trial, kind)


def search(design, problem, count, seed=0, history=None, **outcomes):
    """Trials asked and told one by one, and the history at the end."""
    history, trials = history or History(), []
    for _ in range(count):
        trial = next_trial(design, problem, history, seed)
        if trial is None:
            break
        trials.append(trial)
        history = history.with_asked(trial).with_told(outcome_of(trial, **outcomes))
    return trials, history


def search_with_workers(design, problem, count, workers, seed, **outcomes):
    """As ``search`` with several trials under way, told in a random order."""
    generator = np.random.default_rng(seed)
    history, trials = History(), []
    while len(trials) < count or history.pending:
        trial = None
        if len(trials) < count and len(history.pending) < workers:
            trial = next_trial(design, problem, history, seed)
        if trial is not None:
            trials.append(trial)
            history = history.with_asked(trial)
        elif history.pending:
            ending = history.pending[generator.integers(len(history.pending))]
            history = history.with_told(outcome_of(ending, **outcomes))
        else:
            break
    return trials, history


def ask_together(design, problem, history, count, seed=0):
    """Several trials asked with no answer in between."""
    trials = []
    for _ in range(count):
        trials.append(next_trial(design, problem, history, seed))
        history = history.with_asked(trials[-1])
    return trials


def stretches(trials):
    """How many trials in a row are at one fraction."""
    found = []
    for trial in trials:
        if not found or found[-1][0] != trial.fraction:
            found.append([trial.fraction, 0])
        found[-1][1] += 1
    return [tuple(stretch) for stretch in found]


def configurations_of(trials):
    return [trial.config["x"] for trial in trials]


def ranked(trials, score=score_of):
    return configurations_of(sorted(trials, key=score, reverse=True))


def places_of(trials):
    return [(trial.config["x"], trial.fraction) for trial in trials]


# --- the brackets


def test_brackets_are_those_of_the_paper():
    """Table 1 of Li et al., R = 81 and η = 3, which has five rungs."""
    table = [[81, 27, 9, 3, 1], [34, 11, 3, 1], [15, 5, 1], [8, 2], [5]]
    expected = [(PAPER[b + i], count) for b, bracket in enumerate(table) for i, count in enumerate(bracket)]
    expected[-2:] = [(1.0, 2 + 5)]  # the last two brackets meet at full data
    problem = problem_of(Space({"x": Int(0, 19_999)}, fractions=PAPER))
    trials, _ = search(Hyperband(), problem, sum(map(sum, table)))
    assert stretches(trials) == expected


@pytest.mark.parametrize("kind", [Hyperband, Bohb])
@pytest.mark.parametrize(("eta", "rungs"), [(2.0, 2), (2.0, 4), (3.0, 1), (3.0, 3), (4.0, 3), (2.5, 3)])
def test_brackets_follow_the_formula_cycle_after_cycle(kind, eta, rungs):
    fractions = [(rung + 1) / rungs for rung in range(rungs)]
    expected = Counter()
    for b in range(rungs):
        n = math.ceil(rungs / (rungs - b) * eta ** (rungs - 1 - b))
        for fraction in fractions[b:]:
            expected[fraction] += n
            n = max(1, math.floor(n / eta))
    trials, _ = search(kind(eta), problem_of(Space({"x": Int(0, 19_999)}, fractions=fractions)), 2 * expected.total())
    for cycle in (trials[: expected.total()], trials[expected.total() :]):
        assert Counter(trial.fraction for trial in cycle) == expected


@given(seeds)
@few
def test_the_best_of_a_rung_are_promoted_the_best_first(seed):
    trials, _ = search(Hyperband(), problem_of(MANY), 9 + 3 + 1 + 5 + 1, seed)
    assert configurations_of(trials[9:12]) == ranked(trials[:9])[:3]
    assert configurations_of(trials[12:13]) == ranked(trials[9:12])[:1]
    assert configurations_of(trials[18:]) == ranked(trials[13:18])[:1]


def test_a_minimised_goal_promotes_the_smallest():
    trials, _ = search(Hyperband(), problem_of(MANY, minimize="score"), 12)
    assert configurations_of(trials[9:]) == ranked(trials[:9])[:-4:-1]


def test_of_equals_the_first_drawn_is_promoted():
    trials, _ = search(Hyperband(), problem_of(MANY), 13, score=lambda _: 0.5)
    assert configurations_of(trials[9:12]) == configurations_of(trials[:3])
    assert trials[12].config == trials[0].config


class WithMemory:
    """Hyperband that remembers its brackets, to check one that does not; the draws are left to the other."""

    def __init__(self, eta, fractions, configurations):
        self.eta, self.fractions, self.configurations = eta, fractions, configurations
        self.drawn = []  # configurations, one list a bracket
        self.tested, self.results = set(), {}

    def asked(self, trial):
        """A trial of the other: is it what comes next?"""
        (place,) = places_of([trial])
        bracket, expected = self._next()
        if expected is None:
            assert trial.fraction == self._start(bracket)
            assert place not in self.tested
            self.drawn[bracket].append(trial.config["x"])
        else:
            assert place == expected
        self.tested.add(place)

    def told(self, outcome):
        (place,) = places_of([outcome.trial])
        self.results[place] = (outcome.failed is None, 0.0 if outcome.failed else score_of(outcome.trial))

    def _start(self, bracket):
        return self.fractions[bracket % len(self.fractions)]

    def _next(self):
        """The first bracket with something to ask, and the place of a promotion where it is one."""
        for bracket in itertools.count():
            if bracket == len(self.drawn):
                self.drawn.append([])
            halvings = len(self.fractions) - 1 - bracket % len(self.fractions)
            size = math.ceil(len(self.fractions) / (halvings + 1) * self.eta**halvings)
            left = self.configurations - sum(fraction == self._start(bracket) for _, fraction in self.tested)
            if len(self.drawn[bracket]) < size and left:
                return bracket, None
            place = self._promotion(bracket)
            if place is not None:
                return bracket, place
        raise AssertionError

    def _promotion(self, bracket):
        contenders, start = self.drawn[bracket], bracket % len(self.fractions)
        for below, fraction in itertools.pairwise(self.fractions[start:]):
            if any((x, below) not in self.results for x in contenders):
                return None
            contenders = sorted(contenders, key=lambda x, f=below: self.results[x, f], reverse=True)
            contenders = contenders[: max(1, math.floor(len(contenders) / self.eta))]
            for x in contenders:
                if (x, fraction) not in self.tested:
                    return (x, fraction)
        return None


@given(seeds, st.integers(1, 40), st.sampled_from([2.0, 3.0]), st.sampled_from(DESIGNS), st.sampled_from([2, 3, 50]))
@few
def test_without_a_memory_it_does_what_it_does_with_one_until_nothing_is_left(seed, count, eta, design, failing):
    def kind_of(trial):
        return "oom" if (trial.config["x"] * 7 + seed) % failing == 0 else None

    problem, memory = problem_of(space_of(count, fractions=THREE)), WithMemory(eta, THREE, count)
    history = History()
    for _ in range(3 * count):
        trial = next_trial(type(design)(eta), problem, history, seed)
        memory.asked(trial)
        history = history.with_asked(trial).with_told(outcome_of(trial, kind_of=kind_of))
        memory.told(history.outcomes[-1])
    assert next_trial(design, problem, history, seed) is None


def test_draws_are_by_the_seed_and_even():
    chosen = [next_trial(Hyperband(), problem_of(SOME), History(), seed).config["x"] for seed in range(2000)]
    counts = np.bincount(chosen, minlength=40)
    # χ² of 39 degrees of freedom: above 80 once in 10⁴.
    assert ((counts - 50.0) ** 2 / 50.0).sum() < 80.0


# --- limits and failures


def promoted_after(metrics, problem):
    """Which of nine trials at the first rung are promoted, given what they measured, in order."""
    trials, history = [], History()
    for told in metrics:
        trial = next_trial(Hyperband(), problem, history)
        trials.append(trial.config["x"])
        history = history.with_asked(trial).with_told(success(trial, **told))
    return [trials.index(x) for x in configurations_of(ask_together(Hyperband(), problem, history, 3))]


def test_what_meets_the_limits_comes_first_and_then_the_highest_constrained_accuracy():
    def told(score, cost=1.0, recall=0.9):
        return {"score": score, "cost": cost, "recall": recall}

    metrics = [
        told(0.9, cost=4.0),  # 0.9 · 2/4 = 0.45
        told(0.47, cost=2.01),  # 0.4677: third
        told(0.9, recall=0.4),  # 0.9 · 0.4/0.8 = 0.45
        told(0.95, cost=4.0, recall=0.4),  # 0.95 / 4
        told(0.6, cost=2.5),  # 0.48: second
        told(0.1, cost=2.0, recall=0.8),  # on the limits is within: first
        *[told(0.3, cost=3.0)] * 3,
    ]
    assert promoted_after(metrics, problem_of(MANY, "cost <= 2", "recall >= 0.8")) == [5, 4, 1]


def test_breaking_a_limit_makes_a_minimised_goal_larger():
    metrics = [
        {"loss": 0.1, "cost": 4.0},  # 0.1 · 4/2 = 0.2: third
        {"loss": 0.15, "cost": 2.2},  # 0.165: second
        {"loss": 5.0, "cost": 1.0},  # within the limit: first
        {"loss": 0.01, "cost": 100.0},  # 0.5
        *[{"loss": 1.0, "cost": 3.0}] * 5,
    ]
    assert promoted_after(metrics, problem_of(MANY, "cost <= 2", minimize="loss")) == [2, 1, 0]


@pytest.mark.parametrize("shift", [0.0, 8.0])
@pytest.mark.parametrize(("limit", "drift"), [(0.0, 1.0), (-1.0, 1.0), (-2.0, -1.0)])
def test_where_a_ratio_to_the_limit_says_nothing_the_goal_decides(limit, drift, shift):
    scores = [3.0, -1.0, 7.0, -2.0, 5.0, -3.0, 1.0, 0.0, -9.0]
    metrics = [{"score": score - shift, "drift": drift} for score in scores]
    assert promoted_after(metrics, problem_of(MANY, f"drift <= {limit}")) == [2, 4, 0]


@given(seeds, st.sets(st.integers(0, 8), max_size=8))
@few
def test_what_failed_is_never_promoted_above_what_ran(seed, failing):
    problem = problem_of(MANY)
    asked, _ = search(Hyperband(), problem, 9, seed)
    failed = {asked[number].config["x"] for number in failing}
    trials, _ = search(
        Hyperband(), problem, 12, seed, kind_of=lambda trial: "timeout" if trial.config["x"] in failed else None
    )
    ran = [x for x in ranked(asked) if x not in failed]
    assert configurations_of(trials[9:12])[: len(ran)] == ran[:3]


def test_a_bracket_of_failures_goes_on():
    trials, _ = search(Hyperband(), problem_of(MANY), 22, kind_of=lambda _: "oom")
    assert stretches(trials) == [(0.1, 9), (0.5, 3), (1.0, 1), (0.5, 5), (1.0, 4)]


@pytest.mark.parametrize("number", [0, 4, 8])
def test_a_pre_empted_draw_leaves_its_slot(number):
    problem = problem_of(MANY)
    trials, _ = search(Hyperband(), problem, 14, kind_of=lambda trial: PREEMPTED if trial.number == number else None)
    assert stretches(trials) == [(0.1, 10), (0.5, 3), (1.0, 1)]
    ran = [trial for trial in trials[:10] if trial.number != number]
    assert configurations_of(trials[10:13]) == ranked(ran)[:3]


def test_a_forgotten_failure_leaves_its_slot_as_a_pre_empted_one_does():
    def fate(kind):
        return search(Hyperband(), problem_of(MANY), 5, kind_of=lambda one: kind if one.number == 2 else None)[1]

    forgotten = ask_together(Hyperband(), problem_of(MANY), fate("exit").with_forgotten(2), 9)
    assert forgotten == ask_together(Hyperband(), problem_of(MANY), fate(PREEMPTED), 9)


def test_a_pre_empted_promotion_is_asked_again():
    trials, _ = search(Hyperband(), problem_of(MANY), 13, kind_of=lambda t: PREEMPTED if t.number == 9 else None)
    assert configurations_of(trials[9:13]) == [trials[9].config["x"], *ranked(trials[:9])[:3]]


def test_a_pre_empted_draw_of_a_bracket_that_was_left_is_made_up_for():
    """All of the first bracket under way and some of the second, when one of the first is pre-empted."""
    problem = problem_of(MANY)
    history = History()
    trials = ask_together(Hyperband(), problem, history, 11)
    for trial in trials:
        history = history.with_asked(trial)
    history = history.with_told(failure(trials[3], PREEMPTED))
    following = ask_together(Hyperband(), problem, history, 1 + 3 + 3)
    assert [trial.fraction for trial in following] == [0.1] + [0.5] * 3 + [1.0] * 3


# --- several at once


def test_brackets_that_wait_are_passed_over_for_the_next():
    trials = ask_together(Hyperband(), problem_of(MANY), History(), 2 * len(DRAWN_AT_THREE))
    assert [trial.fraction for trial in trials] == 2 * DRAWN_AT_THREE
    assert len(set(configurations_of(trials))) == len(trials)


@given(seeds, st.integers(1, 30), st.sampled_from(DESIGNS), st.sampled_from([2.0, 3.0]))
@few
def test_whichever_order_trials_end_in_it_does_what_it_does_with_a_memory(seed, workers, design, eta):
    """Trials of another method come in between: they take no slots."""
    problem, memory = problem_of(space_of(300, fractions=THREE)), WithMemory(eta, THREE, 300)
    generator = np.random.default_rng(seed)
    history = History()
    while history.next_number < 70:
        if len(history.pending) == workers:
            ending = history.pending[generator.integers(workers)]
            history = history.with_told(outcome_of(ending))
            memory.told(history.outcomes[-1])
        elif generator.random() < 0.2:
            foreign = Trial(history.next_number, {"x": int(generator.integers(300))}, THREE[generator.integers(3)])
            if places_of([foreign])[0] not in memory.tested:
                history = history.with_asked(foreign)
                memory.tested.update(places_of([foreign]))
        else:
            trial = next_trial(type(design)(eta), problem, history, seed)
            memory.asked(trial)
            history = history.with_asked(trial)


@given(seeds, st.permutations(range(30)))
@few
def test_the_order_of_telling_does_not_matter(seed, order):
    problem = problem_of(SOME)
    _, history = search(Hyperband(), problem, 30, seed)
    told = {outcome.trial.number: outcome for outcome in history.outcomes}
    other = History(tuple(told[number] for number in order), (), history.next_number)
    for design in DESIGNS:
        assert next_trial(design, problem, other, seed) == next_trial(design, problem, history, seed)


@given(seeds, st.integers(1, 12), st.integers(1, 9), st.sampled_from(DESIGNS))
@few
def test_in_a_small_space_everything_is_asked_once_and_then_nothing(seed, count, workers, design):
    def kind_of(trial):
        return [None, None, "oom", PREEMPTED][hash((trial.number, seed)) % 4]

    trials, history = search_with_workers(
        design, problem_of(space_of(count, fractions=THREE)), 1000, workers, seed, kind_of=kind_of
    )
    preempted = [outcome.trial for outcome in history.outcomes if outcome.failed == PREEMPTED]
    assert Counter(places_of(trials)) - Counter(places_of(preempted)) == Counter(
        {(x, fraction): 1 for x in range(count) for fraction in THREE}
    )


def test_with_no_answers_at_all_everything_is_still_asked_once():
    problem = problem_of(space_of(12, fractions=THREE))
    trials = ask_together(Hyperband(), problem, History(), 36)
    assert len(set(places_of(trials))) == 36
    history = History((), tuple(trials), 36)
    assert next_trial(Hyperband(), problem, history) is None


# --- what others measured


def test_a_promotion_that_was_measured_already_is_not_asked_again_but_counts():
    problem = problem_of(MANY)
    trials, history = search(Hyperband(), problem, 9)
    first, second, third = ranked(trials)[:3]
    foreign = Trial(history.next_number, {"x": second}, 0.5)
    history = history.with_asked(foreign).with_told(success(foreign, score=2.0))
    following, _ = search(Hyperband(), problem, 3, history=history)
    assert places_of(following) == [(first, 0.5), (third, 0.5), (second, 1.0)]


def test_snapshots_on_the_way_count_as_measured():
    problem = problem_of(MANY.with_snapshots(True))
    trials, history = search(Hyperband(), problem, 9)
    first, second, third = ranked(trials)[:3]
    full = Trial(history.next_number, {"x": first}, 1.0, (0.5,))
    pending = history.with_asked(full)
    promoted = ask_together(Hyperband(), problem, pending, 2)
    assert places_of(promoted) == [(second, 0.5), (third, 0.5)]
    measured = tuple(Measurement({"x": first}, f, {"score": -2.0, "time": 1.0}) for f in (0.5, 1.0))
    history = pending.with_told(Outcome(full, measured, None, 0.0, 1.0))
    following, _ = search(Hyperband(), problem, 3, history=history)
    assert places_of(following) == [*places_of(promoted), (ranked(promoted)[0], 1.0)]


def test_of_what_was_measured_twice_the_first_trial_decides():
    """Else a rung that was decided, and whose promotions are under way, would be decided again."""
    problem = problem_of(MANY)
    trials, history = search(Hyperband(), problem, 9)
    again = success(Trial(9, {"x": ranked(trials)[-1]}, 0.1), score=9.0)
    for outcomes in ((*history.outcomes, again), (again, *history.outcomes)):
        twice = History(outcomes, (), 10)
        assert configurations_of(ask_together(Hyperband(), problem, twice, 3)) == ranked(trials)[:3]


@pytest.mark.parametrize("others", [[], [(0, 0.5)], [(0, 0.5), (1, 1.0)]])
def test_what_was_tested_at_the_very_rung_is_not_drawn_and_the_bracket_takes_what_there_is(others):
    """Of twelve configurations eight are measured; the trials of another design come between the four draws."""
    problem, history = problem_of(space_of(12, fractions=THREE)), History()
    for x in range(8):
        foreign = Trial(x, {"x": x}, 0.1)
        history = history.with_asked(foreign).with_told(outcome_of(foreign))
    drawn, history = search(Hyperband(), problem, 2, history=history)
    for x, fraction in others:
        foreign = Trial(history.next_number, {"x": x}, fraction, (), "design")
        history = history.with_asked(foreign).with_told(outcome_of(foreign))
    trials, _ = search(Hyperband(), problem, 4, history=history)
    drawn += trials[:2]
    assert {trial.fraction for trial in drawn} == {0.1}
    assert set(configurations_of(drawn)) == {8, 9, 10, 11}
    assert places_of(trials[2:]) == [(ranked(drawn)[0], 0.5), (ranked(drawn)[0], 1.0)]


def test_fractions_that_the_space_does_not_offer_are_left_aside():
    foreign = Trial(0, {"x": 3}, 0.33, (), "design")
    history = History().with_asked(foreign).with_told(outcome_of(foreign))
    trials, _ = search(Hyperband(), problem_of(MANY), 10, history=history)
    assert stretches(trials) == [(0.1, 9), (0.5, 1)]


def test_in_a_space_without_end_members_are_known_by_their_trials():
    space = Space({"x": Float(0.0, 1.0), "kind": Choice(["a", "b"])}, fractions=THREE)
    trials, history = search(Hyperband(), problem_of(space), 40)
    assert stretches(trials)[:4] == [(0.1, 9), (0.5, 3), (1.0, 1), (0.5, 5)]
    assert configurations_of(trials[9:12]) == ranked(trials[:9])[:3]
    assert next_trial(Bohb(), problem_of(space), history) is not None


def test_a_pre_empted_configuration_need_not_be_in_the_pool_any_more():
    problem = problem_of(Space({"x": Float(0.0, 1.0)}, fractions=THREE))
    gone = Trial(0, {"x": 0.123456789}, 0.1, (), "design")
    trials, _ = search(Hyperband(), problem, 10, history=History().with_told(failure(gone, PREEMPTED)))
    assert stretches(trials) == [(0.1, 9), (0.5, 1)]


# --- a pure function


@given(seeds, st.integers(0, 60), st.sampled_from(DESIGNS))
@few
def test_the_same_history_and_seed_ask_the_same(seed, count, design):
    _, history = search(design, problem_of(SOME), count, seed)
    fresh = problem_of(space_of(40, fractions=THREE))
    assert next_trial(design, problem_of(SOME), history, seed) == next_trial(design, fresh, history, seed)


# --- the model of BOHB


GRID = Space.from_configs([{"x": x, "y": y} for x in range(20) for y in range(20)], fractions=PAPER)


def distance(trial):
    return math.hypot(trial.config["x"] - 14, trial.config["y"] - 5)


@cache
def drawn_from_grid(design, seed):
    """The 81 draws of the first bracket; good is what is near (14, 5)."""
    return search(design, problem_of(GRID), 81, seed, score=lambda trial: -distance(trial))[0]


def share_within(design, nearest, farthest):
    """Of the draws once there is a model, over some seeds."""
    drawn = [trial for seed in range(6) for trial in drawn_from_grid(design, seed)[20:]]
    return np.mean([nearest <= distance(trial) <= farthest for trial in drawn])


def test_draws_gather_where_configurations_are_good():
    """A disc of radius 4 holds an eighth of the grid."""
    evenly = share_within(Hyperband(), 0, 4)
    assert 0.05 < evenly < 0.2
    assert share_within(Bohb(), 0, 4) > 3.0 * evenly


def test_candidates_are_drawn_where_configurations_are_good_before_any_is_preferred():
    drawn = share_within(Bohb(random_share=0.0, candidates=1), 0, 4)
    assert drawn > 2.0 * share_within(Hyperband(), 0, 4)
    assert share_within(Bohb(random_share=0.0, candidates=1, widening=1.0), 0, 4) > 1.3 * drawn


def test_where_good_ones_have_bad_neighbours_fewer_are_drawn():
    """Six good ones, three in each of two corners; the 34 bad ones are all about one corner."""
    good = [(2, 2), (2, 4), (4, 2), (17, 17), (17, 15), (15, 17)]
    bad = [(x, y) for x in range(14, 19) for y in range(13, 20) if (x, y) not in good] + [(19, 16), (19, 18)]
    history = History()
    for x, y in good + bad:
        trial = Trial(history.next_number, {"x": x, "y": y}, 1.0)
        history = history.with_asked(trial).with_told(success(trial, score=float((x, y) in good)))
    drawn = [next_trial(Bohb(random_share=0.0), problem_of(GRID), history, seed).config for seed in range(20)]
    assert all(config["x"] + config["y"] < 19 for config in drawn)


def test_far_from_what_is_good_only_a_third_of_the_draws_fall():
    evenly = share_within(Hyperband(), 8, 99)
    assert share_within(Bohb(random_share=0.0), 8, 99) < 0.02
    assert 0.2 < share_within(Bohb(), 8, 99) / evenly < 0.47


def test_draws_keep_away_from_where_trials_fail():
    """The score is the same everywhere, and one half of the grid fails."""

    def share_failing(design):
        return np.mean(
            [
                trial.config["x"] < 10
                for seed in range(6)
                for trial in search(
                    design,
                    problem_of(GRID),
                    81,
                    seed,
                    score=lambda _: 0.5,
                    kind_of=lambda trial: "oom" if trial.config["x"] < 10 else None,
                )[0][40:]
            ]
        )

    assert share_failing(Bohb(random_share=0.0)) < 0.1 < 0.35 < share_failing(Hyperband())


@given(seeds)
@few
def test_with_random_draws_only_it_is_hyperband(seed):
    problem = problem_of(SOME)
    assert search(Bohb(random_share=1.0), problem, 60, seed) == search(Hyperband(), problem, 60, seed)


def test_draws_are_random_until_enough_is_measured_at_one_fraction():
    """Two parameters: three points for each density, and two more to tell them apart."""
    problem = problem_of(GRID)
    for seed in range(10):
        model, even = Bohb(random_share=0.0), Hyperband()
        assert search(model, problem, 5, seed)[0] == search(even, problem, 5, seed)[0]
    assert any(search(model, problem, 6, seed)[0] != search(even, problem, 6, seed)[0] for seed in range(10))


def test_the_largest_fraction_with_enough_measurements_is_believed():
    """The small fraction favours one corner, full data the other."""
    problem, history = problem_of(GRID), History()
    generator = np.random.default_rng(0)
    for fraction, corner, count in [(PAPER[0], 0, 40), (1.0, 19, 20), (0.5, 0, 4)]:
        for position in generator.choice(400, count, replace=False):
            config = {"x": int(position) // 20, "y": int(position) % 20}
            trial = Trial(history.next_number, config, fraction)
            score = -math.hypot(config["x"] - corner, config["y"] - corner)
            history = history.with_asked(trial).with_told(success(trial, score=score))
    drawn = [next_trial(Bohb(random_share=0.0), problem, history, seed).config for seed in range(20)]
    assert np.mean([config["x"] + config["y"] for config in drawn]) > 26


# --- early dropping for a method with a model


def kept_places(measurements, failures=(), eta=3.0):
    """(configuration, fraction) of six configurations at three fractions that are kept."""
    space = space_of(6, fractions=THREE)
    quantities = {"score": (IDENTITY, gaussian_over(space, 0.0)), "time": (LOG, gaussian_over(space, 0.0))}
    outlook = outlook_of(belief_of(problem_of(space, "time <= 10s"), quantities, measurements, failures))
    kept = DropUnderperformers(eta).keep(outlook, None, np.random.default_rng(0))
    places = outlook.candidates.at(kept)
    return set(zip(places.positions.tolist(), places.fractions.tolist(), strict=True))


EVERYWHERE = set(itertools.product(range(6), THREE))


def test_two_of_three_that_did_worst_on_little_data_are_not_tested_on_more():
    """Of six tested at a tenth the two best, ⌊6 / 3⌋, go on; a limit that is broken counts as with Hyperband."""
    scores = [5.0, 1.0, 4.0, 2.0, 3.0, 9.0]
    seen = [measurement(x, 0.1, score=score, time=99.0 if x == 5 else 1.0) for x, score in enumerate(scores)]
    dropped = {(x, fraction) for x in (1, 3, 4, 5) for fraction in (0.5, 1.0)}
    assert kept_places(seen) == EVERYWHERE - dropped


def test_what_was_not_tested_on_less_is_not_dropped_and_a_failure_is_the_worst():
    seen = [measurement(0, 0.5, score=1.0, time=1.0)]
    assert kept_places(seen, failures=[(2, 0.5)]) == EVERYWHERE - {(2, 1.0)}


def test_who_was_dropped_is_back_when_enough_others_did_worse():
    """Second of three is dropped; second of six is not."""
    three = [measurement(x, 0.1, score=-x, time=1.0) for x in range(3)]
    assert (1, 1.0) not in kept_places(three)
    assert (1, 1.0) in kept_places([measurement(x, 0.1, score=-x, time=1.0) for x in range(6)])
