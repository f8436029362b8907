"""Why a trial was asked, and why the recommendation is what it is."""

from __future__ import annotations

import numpy as np

from trimtuner.decisions.belief import Places
from trimtuner.errors import InputError
from trimtuner.problem.history import History
from trimtuner.problem.problem import COST, TIME
from trimtuner.state import StudyState
from trimtuner.study.telling import best_text, brief, learning_lines, table_text
from trimtuner.tuning import tuner
from trimtuner.tuning.pareto import price_sought
from trimtuner.views.words import configuration, metric, share


def explain_text(state: StudyState, number: int | None) -> str:
    """Why a trial was asked, or why the recommendation is what it is."""
    if number is None:
        return _why_recommended(state)
    return "\n".join([_why_trial(state, number), *(f"noted: {note}" for note in state.notes.get(number, ()))])


def _why_trial(state: StudyState, wanted: int) -> str:
    trial = next((one for one in state.trials if one.number == wanted), None)
    if trial is None:
        see = f"; see: trimtuner trials {state.job_file}" if state.job_file else f"; there were {len(state.trials)}"
        raise InputError(f"there is no trial {wanted}{see}")
    lines = [f"trial {wanted}: {brief(trial)}"]
    before = _history_before(state.history, wanted)
    if wanted == 0 and trial.origin == "design" and _is_advised(state):
        lines += [*learning_lines(state), "the first trial is what they would recommend, on the smallest fraction"]
        return "\n".join(lines)
    if trial.origin == "design":
        lines.append("the design asked for it: first trials are chosen by a rule, before there is a model to ask")
        return "\n".join(lines)
    if trial.origin == "user":
        return "\n".join([*lines, "it was enqueued: a user wanted it next"])
    if trial.origin == "import":
        return "\n".join([*lines, "it was measured elsewhere and imported"])
    if not before.measurements:
        return "\n".join([*lines, "nothing had been measured yet, so a random configuration was taken"])
    belief = tuner.believe(state.problem, state.recipe, before, state.seed)
    if trial.config not in belief.pool:
        belief = belief.elsewhere([dict(trial.config)])  # several at a time: what else was under way moved the pool
    place = Places(belief.pool, np.array([belief.pool.position(trial.config)]), np.array([trial.fraction]))
    lines.append(f"the method {state.method} chose it after {len(before.outcomes)} trials, expecting")
    price = price_sought(state.recipe, belief, wanted)
    if price is not None:
        against = belief.problem.goal.against or COST
        sought = f"the best {belief.problem.goal.metric} for a {against} of at most {metric(against, price)}"
        lines[-1] = f"looking for {sought}, {lines[-1]}"
    for name in dict.fromkeys((*belief.problem.metrics, COST, TIME)):
        if belief.quantity_name(name) in belief.quantities:
            lines.append(f"  {name}: {metric(name, float(belief.expected(name, place)[0]))}")
    lines.append(f"  P(it runs and meets every limit there) = {float(belief.chance_feasible(place)[0]):.2f}")
    if trial.recommended is not None:
        config, fraction = trial.recommended
        named = f"{configuration(config)} on {share(fraction)} of the data"
        is_proof = (dict(config), fraction) == (dict(trial.config), trial.fraction)
        itself = ": this very trial, which turns that forecast into a measurement" if is_proof else ""
        lines.append(f"recommended at that time: {named}{itself}")
    return "\n".join(lines)


def _is_advised(state: StudyState) -> bool:
    """Whether the first trial came from earlier studies: they must have measured all that goal and limits speak of."""
    problem = state.recipe.narrow(state.problem)
    return state.recipe.expect(problem, tuner.pool_for(problem, History(), state.seed)) is not None


def _why_recommended(state: StudyState) -> str:
    recommendation, belief = state.recommendation, state.belief
    if recommendation is None or belief is None:
        return "\n".join(["nothing has been measured yet, so nothing is recommended", *learning_lines(state)])
    goal = belief.problem.goal
    if state.front is not None:
        reached = f"of {len(belief.targets)} that could be recommended, judged from {len(state.history.measurements)}"
        why = "no other is better without costing more; at the knee the front turns"
        told = f"{best_text(state, recommendation)}\n\n{reached} measurements, these are on the front: {why}"
        return "\n".join([told, *learning_lines(state)])
    order = np.argsort(-(belief.worth_at_targets * belief.feasible_at_targets), kind="stable")[:5]
    rows = []
    for target in order.tolist():
        place, measured = belief.targets.at(np.array([target])), belief.measured_targets.get(target)
        found = float(belief.expected(goal.metric, place)[0]) if measured is None else measured.metrics[goal.metric]
        rows.append(
            [
                metric(goal.metric, found),
                f"{belief.feasible_at(target):.2f}",
                "predicted" if measured is None else "measured",
                share(float(place.fractions[0])),
                configuration(belief.pool.configuration(int(place.positions[0]))),
            ]
        )
    heads = [goal.metric, "P(limits)", "", "data", "configuration"]
    tested = len(state.history.measurements)
    return "\n".join(
        [
            best_text(state, recommendation),
            "",
            f"of {len(belief.targets)} that could be recommended, judged from {tested} measurements, the best five are",
            table_text(heads, rows),
            *learning_lines(state),
        ]
    )


def _history_before(history: History, number: int) -> History:
    """What was known when a trial was asked, as near as the record tells: trials with a smaller number."""
    outcomes = tuple(outcome for outcome in history.outcomes if outcome.trial.number < number)
    return History(outcomes, (), number)
