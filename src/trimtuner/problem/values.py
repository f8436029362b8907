"""What a value of a configuration may be, and what counts as a number wherever a user gives one."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from numbers import Integral, Real
from typing import TypeGuard

import numpy as np

from trimtuner.errors import InputError
from trimtuner.problem.expressions import Scalar, Value


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number, Python's or numpy's; true and false are none."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that is larger than any other
        return False


def is_whole_number(value: object) -> TypeGuard[int]:
    """Whether it is a whole number, Python's or numpy's; true and false are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def plain_value(value: Value | Sequence[Scalar]) -> Value:
    """The value as plain Python, a list as a tuple; an error for what a configuration cannot hold."""
    return tuple(_plain_scalar(one) for one in value) if isinstance(value, tuple | list) else _plain_scalar(value)


def number_in(value: Value) -> float:
    """The number that a value is known to be; an error where it is none."""
    if not is_number(value):
        raise InputError(f"{value!r} is not a number")
    return float(value)


def written(value: Value) -> str:
    """A value as one word that reads back as the same: texts as they are, all else as JSON has it."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if value is None or isinstance(value, bool | tuple) else repr(value)


def told_apart(value: Value) -> Hashable:
    """What two values that are the same share: Python takes True for 1, a configuration does not."""
    if isinstance(value, tuple):
        return ((), *map(told_apart, value))  # begins as none of the others does
    return (value,) if value is None or isinstance(value, bool) else value


def _plain_scalar(value: object) -> Scalar:
    """A single value as plain Python; an error for what none is."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is not None and not isinstance(value, str | bool | int | float):
        raise InputError(f"a value is a number, a text, true/false, None or a tuple of these, not {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"a value must be finite, not {value!r}")
    return value
