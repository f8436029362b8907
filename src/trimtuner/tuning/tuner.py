"""What to test next and whom to recommend: pure functions of problem, recipe, history and seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trimtuner.arrays import Booleans, Floats, Positions
from trimtuner.decisions.acquisition import Acquisition
from trimtuner.decisions.belief import CAUTION, Belief, Places
from trimtuner.decisions.designs import Step
from trimtuner.decisions.incumbents import MostExpected
from trimtuner.decisions.outlook import Outlook
from trimtuner.decisions.pareto import Outline, belief_within, price_of_step, prices_along, undominated
from trimtuner.decisions.stopping import Prospect
from trimtuner.errors import SearchOver
from trimtuner.models.posterior import one_thread
from trimtuner.problem.axes import Configuration
from trimtuner.problem.history import History, Origin, Trial
from trimtuner.problem.problem import Problem
from trimtuner.problem.space import Pool
from trimtuner.tuning.pareto import outline_named, outline_sought
from trimtuner.tuning.recipe import Recipe

_ANCHORS = 5  # good configurations whose neighbourhood a pool covers
_SCORED_AT_MOST = 4096  # candidates; more are first thinned by how much they could move the contenders
_ROUNDING = 1e-9  # of the budget: a trial that fits to the last digit fits
_PRICES_TO_STOP_AT = 5  # along a front
_THINNED_BY = 16  # contenders that the thinning looks at


@one_thread
def ask(problem: Problem, recipe: Recipe, history: History, seed: int, belief: Belief | None = None) -> Trial:
    """The next trial; ``belief`` spares a second fit where that of this very history is at hand."""
    recipe = recipe.suited_to(problem)
    problem, history = _as_seen(problem, recipe, history)
    if wanted := _wanted_by_user(problem, recipe, history):
        return wanted  # whatever the stop rule says: a user asked for it
    pool = pool_for(problem, history, seed) if belief is None else belief.pool
    step = _advised_step(recipe, problem, pool, history) or _designed_step(recipe, problem, pool, history, seed)
    if step is not None and _worst_case_fits(problem, pool, history, np.array([step.position])).all():
        _stop_if_enough(recipe, history, None)
        return _trial(pool, history, step, "design")
    candidates = _within_worst_case(_untested(recipe, problem, pool, history), problem, history)
    if recipe.acquisition is None:
        raise SearchOver("there is nothing left that this method would test; take the recommendation")
    if not history.measurements:
        _stop_if_enough(recipe, history, None)
        return _trial(pool, history, _random_step(candidates, (seed, history.next_number)), "random")
    if belief is None:
        belief = recipe.believe(problem, pool, history, seed)
    found = None if belief.problem.goal.against is None else outline_sought(recipe, belief)
    sought = belief if found is None else belief_within(belief, price_of_step(found, history.next_number))
    outlook = _affordable(recipe, sought, candidates, history, (seed, history.next_number))
    chosen = _best_candidate(recipe, recipe.acquisition, outlook, np.random.default_rng([seed, history.next_number, 0]))
    prospect = Prospect(outlook, chosen)
    _stop_if_enough(recipe, history, prospect, () if found is None else _along(found, belief, prospect))
    position, fraction = int(outlook.candidates.positions[chosen]), float(outlook.candidates.fractions[chosen])
    snapshots = _snapshots(problem, pool, history, position, fraction) if recipe.takes_snapshots else ()
    trial = _trial(pool, history, Step(position, fraction, snapshots), "model")
    target = belief.targets.at(np.array([recommend(recipe, belief, history)]))
    recommended = (pool.configuration(int(target.positions[0])), float(target.fractions[0]))
    return replace(trial, recommended=recommended)


@one_thread
def recommend(recipe: Recipe, belief: Belief, history: History) -> int:
    """The best target as far as is known; what was recommended before stays for want of a reason to change it.

    Where the best is wanted for every price: the knee of the front, as soon as there is one.
    """
    recipe = recipe.suited_to(belief.problem)
    found = None if belief.problem.goal.against is None else outline_named(recipe, belief)
    if found is not None and len(found):
        return int(found.targets[found.knee])
    before = history.last_recommended
    # Another method may have recommended a fraction that is no target of this one.
    if before is None or before[1] not in belief.problem.target_fractions:
        return recipe.incumbent.choose(belief)
    configuration, fraction = before
    return recipe.incumbent.choose(belief, belief.target_at(dict(configuration), fraction))


def _along(found: Outline, belief: Belief, prospect: Prospect) -> tuple[Prospect, ...]:
    """The same trial as seen from prices all along the front: a search for all of them is over when it is at each."""
    prices = prices_along(found, np.linspace(0.0, 1.0, _PRICES_TO_STOP_AT)).tolist()
    outlooks = [prospect.outlook.believing(belief_within(belief, price)) for price in prices]
    return tuple(Prospect(outlook, prospect.chosen) for outlook in outlooks)


@one_thread
def believe(problem: Problem, recipe: Recipe, history: History, seed: int) -> Belief:
    """What the method makes of the history."""
    recipe = recipe.suited_to(problem)
    problem, history = _as_seen(problem, recipe, history)
    return recipe.believe(problem, pool_for(problem, history, seed), history, seed)


def _wanted_by_user(problem: Problem, recipe: Recipe, history: History) -> Trial | None:
    """What waits longest, of all that what is left of the budget covers."""
    for config, fraction in history.queued:
        pool = problem.space.pool_holding([config, *(trial.config for trial in history.pending)])
        position = pool.position(config)
        if _worst_case_fits(problem, pool, history, np.array([position])).all():
            taken = _snapshots(problem, pool, history, position, fraction) if recipe.takes_snapshots else ()
            asked = _trial(pool, history, Step(position, fraction, taken), "user")
            return replace(asked, recommended=history.last_recommended)
    return None


def _advised_step(recipe: Recipe, problem: Problem, pool: Pool, history: History) -> Step | None:
    """The very first trial of a study that learns from others: what they would recommend, on the least data."""
    if history.next_number > 0:
        return None
    expected = recipe.expect(problem, pool)
    if expected is None:
        return None
    target = MostExpected().choose(expected)
    return Step(int(expected.targets.positions[target]), recipe.tested_fractions(problem)[0])


def _designed_step(recipe: Recipe, problem: Problem, pool: Pool, history: History, seed: int) -> Step | None:
    """What is tested before there is a model, on what the method tests."""
    return recipe.design.next_step(problem.narrowed_to(recipe.tested_fractions(problem)), pool, history, seed)


def _as_seen(problem: Problem, recipe: Recipe, history: History) -> tuple[Problem, History]:
    """Problem and history as the method sees them: without the fractions that it knows nothing of."""
    narrow = recipe.narrow(problem)
    return narrow, history if narrow is problem else history.at_fractions(narrow.space.fractions)


def _stop_if_enough(
    recipe: Recipe, history: History, prospect: Prospect | None, others: tuple[Prospect, ...] = ()
) -> None:
    if recipe.stop is None:
        return
    reason = recipe.stop.reason(history, prospect)
    if reason is not None and all(recipe.stop.reason(history, other) is not None for other in others):
        raise SearchOver(f"the search is over: {reason}; take the recommendation")


def pool_for(problem: Problem, history: History, seed: int) -> Pool:
    """The configurations in play; where not all can be, those of the history and the neighbours of its best."""
    if problem.space.is_enumerable:
        return problem.space.pool()
    keep: dict[object, Configuration] = {}
    for configuration, _ in history.tested():
        keep[problem.space.key(dict(configuration))] = dict(configuration)
    if history.last_recommended is not None:
        recommended = dict(history.last_recommended[0])
        keep[problem.space.key(recommended)] = recommended
    return problem.space.pool(list(keep.values()), _best_measured(problem, history), seed)


def _best_measured(problem: Problem, history: History) -> list[Configuration]:
    """Configurations that measured best, at their largest fraction, those within the limits first."""
    goal = problem.goal
    if goal.against is not None:
        return _best_measured_at_prices(problem, history, goal.against)
    ranked = sorted(
        history.measurements,
        key=lambda m: (
            all(c.is_met(m.metrics[c.metric]) for c in problem.constraints if c.metric in m.metrics),
            goal.sign * m.metrics[goal.metric],
            m.fraction,
        ),
        reverse=True,
    )
    distinct = {problem.space.key(dict(m.configuration)): dict(m.configuration) for m in ranked}
    return list(distinct.values())[:_ANCHORS]


def _best_measured_at_prices(problem: Problem, history: History, price: str) -> list[Configuration]:
    """Configurations that no other beats in goal and price at their fraction: of the largest fractions, spread out."""
    found: dict[object, Configuration] = {}
    for fraction in reversed(problem.space.fractions):
        level = [m for m in history.measurements if m.fraction == fraction]
        prices = np.array([m.metrics[price] for m in level])
        worths = np.array([problem.goal.sign * m.metrics[problem.goal.metric] for m in level])
        is_within = [all(c.is_met(m.metrics[c.metric]) for c in problem.constraints) for m in level]
        best = undominated(prices, worths, np.array(is_within, dtype=bool))
        for place in np.unique(np.linspace(0, len(best) - 1, _ANCHORS).astype(int)) if len(best) else ():
            configuration = dict(level[best[place]].configuration)
            found.setdefault(problem.space.key(configuration), configuration)
    return list(found.values())[:_ANCHORS]


def _untested(recipe: Recipe, problem: Problem, pool: Pool, history: History) -> Places:
    fractions = recipe.tested_fractions(problem)
    everywhere = Places.product(pool, fractions)
    is_open = np.ones(len(everywhere), dtype=bool)
    for configuration, fraction in history.tested():
        if fraction in fractions:
            is_open[everywhere.number_of(pool.position(dict(configuration)), fraction)] = False
    if not is_open.any():
        raise SearchOver(
            "every configuration has been tested at every fraction that the method tests; there is nothing left to ask"
        )
    return everywhere.at(np.nonzero(is_open)[0])


def left_for_next_trial(budget: float, history: History, reserved: float) -> float:
    """USD of the budget that a next trial may cost, when so much is reserved for those under way."""
    return budget - history.spent - reserved


def _worst_case_fits(problem: Problem, pool: Pool, history: History, positions: Positions) -> Booleans:
    """Whether what is left of the budget covers each configuration's worst case, those of pending trials reserved."""
    prices = pool.prices_per_hour
    if problem.budget is None or problem.trial_limit is None or prices is None:
        return np.ones(len(positions), dtype=bool)
    known, which = np.unique(prices, return_inverse=True)
    worst = np.array([problem.worst_cost(float(price)) for price in known], dtype=float)[which]
    pending = [pool.position(trial.config) for trial in history.pending]
    left = left_for_next_trial(problem.budget, history, float(worst[pending].sum()))
    return np.asarray(worst[positions] <= left + _ROUNDING * problem.budget)


def _within_worst_case(candidates: Places, problem: Problem, history: History) -> Places:
    fits = _worst_case_fits(problem, candidates.pool, history, candidates.positions)
    if fits.any():
        return candidates.at(np.nonzero(fits)[0])
    raise SearchOver(
        f"of the budget of {problem.budget:g} USD {history.spent:.4g} are spent, and what is left covers no trial that "
        "runs until it is ended; raise the budget, shorten the time-out, or take the recommendation"
    )


def _affordable(recipe: Recipe, belief: Belief, candidates: Places, history: History, seed: tuple[int, int]) -> Outlook:
    """The outlook on candidates that very likely fit what is left of the budget, pending trials paid for."""
    outlook = replace(Outlook.of(belief, candidates, (*seed, 1)), confidence=recipe.confidence)
    budget = belief.problem.budget
    if budget is None:
        return outlook
    left = left_for_next_trial(budget, history, _pending_cost(belief, history))
    outlook = replace(outlook, left=left)
    if belief.problem.trial_limit is not None and belief.pool.prices_per_hour is not None:
        # Every candidate's worst case fits; forecasts only tell a lookahead how far the money will go.
        return replace(outlook, confidence=0.5)
    fits = outlook.is_affordable
    if not fits.any():
        raise SearchOver(
            f"the budget of {budget:g} USD has {max(left, 0.0):.4g} left, and the cheapest trial may cost "
            f"{outlook.effort_at_most(outlook.confidence).min():.4g}; raise the budget, or take the recommendation"
        )
    if fits.all():
        return outlook
    fitting = Outlook.of(belief, candidates.at(np.nonzero(fits)[0]), outlook.seed)
    return replace(fitting, left=left, confidence=recipe.confidence)


def _pending_cost(belief: Belief, history: History) -> float:
    if not history.pending:
        return 0.0
    places = Places.listed(belief.pool, [(trial.config, trial.fraction) for trial in history.pending])
    return float(belief.effort_at_most(belief.predict(belief.effort_metric, places), CAUTION).sum())


def _best_candidate(recipe: Recipe, acquisition: Acquisition, outlook: Outlook, generator: np.random.Generator) -> int:
    def score_of(positions: Positions) -> Floats:
        return acquisition.score(outlook if len(positions) == len(outlook.candidates) else outlook.at(positions))

    kept = recipe.filter.keep(outlook, score_of, generator)
    if len(kept) > _SCORED_AT_MOST:
        thinned = Outlook.of(outlook.belief, outlook.candidates.at(kept), outlook.seed, _THINNED_BY)
        kept = kept[_most_moving(thinned)]
    scores = score_of(kept)
    # Ties are broken at random on purpose: the first would always be the same corner of the space.
    best = np.lexsort((generator.random(len(scores)), -scores))[0]
    return int(kept[best])


def _most_moving(outlook: Outlook) -> Positions:
    """Candidates that could shift the contenders most for their cost: a linear-time stand-in for the acquisition."""
    total = np.zeros(len(outlook.candidates))
    for name in outlook.scene.quantity_names:
        metric = next(m for m in outlook.scene.metrics if outlook.belief.quantity_name(m) == name)
        scale = max(float(outlook.contender_prediction(metric).variance.mean()), 1e-12)
        total += (outlook.movement(metric) ** 2).mean(axis=1) / scale
    order = np.argpartition(-total / outlook.effort, _SCORED_AT_MOST)[:_SCORED_AT_MOST]
    return np.sort(order)


def _snapshots(problem: Problem, pool: Pool, history: History, position: int, fraction: float) -> tuple[float, ...]:
    if not problem.space.snapshots:
        return ()
    tested = {(pool.position(dict(configuration)), f) for configuration, f in history.tested()}
    return tuple(f for f in problem.space.fractions if f < fraction and (position, f) not in tested)


def _random_step(candidates: Places, seed: tuple[int, int]) -> Step:
    """Something at the smallest fraction, for when the design is done and nothing has come back from it yet."""
    smallest = np.nonzero(candidates.fractions == candidates.fractions.min())[0]
    chosen = int(np.random.default_rng([*seed, 2]).choice(smallest))
    return Step(int(candidates.positions[chosen]), float(candidates.fractions[chosen]))


def _trial(pool: Pool, history: History, step: Step, origin: Origin) -> Trial:
    return Trial(
        number=history.next_number,
        config=pool.configuration(step.position),
        fraction=step.fraction,
        snapshots=step.snapshots,
        origin=origin,
    )
