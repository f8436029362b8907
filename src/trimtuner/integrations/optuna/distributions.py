"""Optuna's distributions as parameters, and values from one to the other."""

from __future__ import annotations

import math

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from trimtuner.errors import InputError
from trimtuner.problem.expressions import Value
from trimtuner.problem.inference import with_usual_scale
from trimtuner.problem.parameters import Choice, Float, Int, Parameter, Scale
from trimtuner.problem.values import is_number, number_in

_LISTED_AT_MOST = 64  # values of a range with steps; above, it is searched without steps and rounded to them


def parameter_of(name: str, distribution: BaseDistribution) -> Parameter:
    """The parameter that offers the same values."""
    if not name.isidentifier():
        raise InputError(f"{name!r} is no name for a parameter; use letters, digits and underscores")
    if isinstance(distribution, CategoricalDistribution):
        return _choice_of(name, distribution)
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        raise InputError(f"{name!r} is suggested from {distribution!r}, which is no int, float or categorical")
    if distribution.single():
        return Choice([distribution.low])
    if _is_stepped(distribution) and _step_count(distribution) < _LISTED_AT_MOST:
        return Choice([_at_step(distribution, number) for number in range(_step_count(distribution) + 1)])
    scale: Scale = "log" if distribution.log else "linear"
    if isinstance(distribution, IntDistribution):
        return Int(distribution.low, distribution.high, scale)
    return Float(distribution.low, distribution.high, scale)


def value_within(name: str, distribution: BaseDistribution, value: Value) -> Value:
    """The value as the distribution writes it, rounded to its steps; an error where it does not offer it."""
    found = value
    is_offered = True
    if isinstance(distribution, IntDistribution | FloatDistribution):
        is_offered = is_number(value)
        found = _rounded(distribution, value) if is_offered else value
    try:
        is_offered = is_offered and distribution._contains(distribution.to_internal_repr(found))
    except (TypeError, ValueError):
        is_offered = False
    if not is_offered:
        raise InputError(f"{name}={value!r} of the space is not among what the objective suggests: {distribution!r}")
    return found


def value_at(name: str, distribution: BaseDistribution, unit: float) -> Value:
    """The value at a coordinate in [0, 1)."""
    parameter = parameter_of(name, distribution)
    if isinstance(parameter, Choice):
        return parameter.values[int(unit * len(parameter.values))]
    return value_within(name, distribution, parameter.decode(unit))


def _choice_of(name: str, distribution: CategoricalDistribution) -> Choice:
    try:
        return with_usual_scale(Choice(distribution.choices))
    except InputError as error:
        raise InputError(f"the choices of {name!r}: {error}") from None


def _is_stepped(distribution: IntDistribution | FloatDistribution) -> bool:
    """Every whole number is a step of its own."""
    return distribution.step not in (None, 1) if isinstance(distribution, IntDistribution) else bool(distribution.step)


def _step_count(distribution: IntDistribution | FloatDistribution) -> int:
    return round((distribution.high - distribution.low) / float(distribution.step or math.inf))


def _at_step(distribution: IntDistribution | FloatDistribution, number: int) -> Value:
    value = distribution.low + number * (distribution.step or 0)
    return value if isinstance(distribution, IntDistribution) else min(float(value), distribution.high)


def _rounded(distribution: IntDistribution | FloatDistribution, value: Value) -> Value:
    if not _is_stepped(distribution):
        return value
    return _at_step(distribution, round((number_in(value) - distribution.low) / float(distribution.step or math.inf)))
