"""What a value of a configuration may be, and what counts as a number wherever a user gives one."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TypeGuard

import numpy as np

from trimtuner.errors import InputError
from trimtuner.problem.expressions import Value


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number, Python's or numpy's; true and false are none."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that is larger than any other
        return False


def is_whole_number(value: object) -> TypeGuard[int]:
    """Whether it is a whole number, Python's or numpy's; true and false are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def plain_value(value: Value) -> Value:
    """The value as plain Python; an error for what a configuration cannot hold."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, str | bool | int | float):
        raise InputError(f"a value is a number, a text or true/false, not {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"a value must be finite, not {value!r}")
    return value


def told_apart(value: Value | None) -> Value | tuple[bool] | None:
    """What two values that are the same share: Python takes True for 1, a configuration does not."""
    return (value,) if isinstance(value, bool) else value
