"""Parameters: what may be chosen, and how a choice becomes numbers in [0, 1] and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.errors import InputError, nearest
from trimtuner.problem.expressions import Expression, Value
from trimtuner.problem.values import is_number, is_whole_number, plain_value, told_apart

Scale: TypeAlias = Literal["linear", "log", "log2"]

MIDDLE = 0.5  # of a column: as far from either end
_LARGEST = 1e300  # beyond it, differences leave the range of numbers
_FINEST = 1e-5  # of the range of a parameter: what lies nearer together need not be told apart

_SCALES: dict[str, Callable[[Floats], Floats]] = {"linear": lambda x: x, "log": np.log, "log2": np.log2}


class NoDefault(Enum):
    """Where None would be a value."""

    GIVEN = "no default was given"


@dataclass(frozen=True, repr=False)
class Choice:
    """One of a list of values: numbers on a scale, or names without order; None and tuples of values may be among them.

    ``default``, here and of the others, is what trials had that a study measured before it had the parameter.
    """

    values: tuple[Value, ...]
    scale: Scale | None = None
    when: Expression | None = None
    default: Value | NoDefault = NoDefault.GIVEN

    def __init__(
        self,
        values: Iterable[Value],
        scale: Scale | None = None,
        when: str | None = None,
        default: Value | NoDefault = NoDefault.GIVEN,
    ) -> None:
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(f"the values of a Choice are a list, such as [16, 256], not {values!r}")
        listed = tuple(plain_value(value) for value in values)
        if not listed:
            raise InputError("a Choice needs at least one value")
        first: dict[Hashable, Value] = {}
        for value in listed:
            if told_apart(value) in first:
                raise InputError(f"the value {first[told_apart(value)]!r} is listed twice in a Choice")
            first[told_apart(value)] = value
        numbers = [value for value in listed if is_number(value)]
        numeric = len(numbers) == sum(value is not None for value in listed) > 0
        if scale is not None and not numeric:
            raise InputError(f"scale={scale!r} needs numbers, but the values are {listed!r}")
        if numeric:
            _check_scale(scale or "linear", min(numbers), max(numbers))
        vars(self).update(values=listed, scale=(scale or "linear") if numeric else None, when=_condition(when))
        usual = default if isinstance(default, NoDefault) else listed[self.position(plain_value(default))]
        vars(self).update(default=usual)

    def __repr__(self) -> str:
        scale = f", scale={self.scale!r}" if self.scale not in (None, "linear") else ""
        return f"Choice({list(self.values)!r}{scale}{_rest(self)})"

    @property
    def numbers(self) -> list[float]:
        """Those of the values that are numbers, as they are listed."""
        return [float(value) for value in self.values if is_number(value)]

    @property
    def is_number_or_none(self) -> bool:
        """Whether None is offered beside numbers: it then has a column of its own, and they keep their order."""
        return self.scale is not None and None in self.values

    def columns_of_values(self) -> Floats:
        """The encoded columns of each listed value, one row a value: one for numbers and two names, else one a name."""
        if self.scale is not None:
            return np.vstack([self.columns_of_number(value if is_number(value) else None) for value in self.values])
        if len(self.values) <= 2:
            return np.arange(len(self.values), dtype=float)[:, None]
        # Two different names are as far apart as the two ends of a numeric column.
        return np.eye(len(self.values)) / math.sqrt(2.0)

    def encode(self, value: Floats) -> Floats:
        """Numbers, listed or not, on the column of the listed ones; beyond its ends they are below 0 or above 1."""
        return _encode(value, min(self.numbers), max(self.numbers), self.scale or "linear")

    def columns_of_number(self, value: float | None) -> Floats:
        """The columns of a number, listed or not, or of None: in the middle of the numbers, and apart from them all."""
        place = MIDDLE if value is None else float(self.encode(np.array(float(value))))
        return np.array([place, float(value is None)] if self.is_number_or_none else [place])

    def position(self, value: Value) -> int:
        """Where the value stands in the list."""
        for position, listed in enumerate(self.values):
            if told_apart(listed) == told_apart(value):
                return position
        raise InputError(f"{value!r} is not one of {list(self.values)!r}{nearest(str(value), map(str, self.values))}")


@dataclass(frozen=True, repr=False)
class Int:
    """A whole number from ``min`` to ``max``, both included."""

    min: int
    max: int
    scale: Scale = "linear"
    when: Expression | None = None
    default: int | NoDefault = NoDefault.GIVEN

    def __init__(
        self,
        min: int,  # noqa: A002
        max: int,  # noqa: A002
        scale: Scale = "linear",
        when: str | None = None,
        default: Value | NoDefault = NoDefault.GIVEN,
    ) -> None:
        for bound in (min, max):
            if not is_whole_number(bound):
                raise InputError(f"the bounds of an Int are whole numbers, not {bound!r}")
        _check_bounds("Int", min, max, scale)
        if default is not NoDefault.GIVEN and not (is_whole_number(default) and min <= default <= max):
            raise InputError(f"default={default!r} is no whole number from {min!r} to {max!r}")
        vars(self).update(min=int(min), max=int(max), scale=scale, when=_condition(when), default=default)

    def __repr__(self) -> str:
        return f"Int({self.min!r}, {self.max!r}{_rest_of_range(self)})"

    @property
    def count(self) -> int:
        """How many values there are."""
        return self.max - self.min + 1

    def encode(self, value: Floats) -> Floats:
        """Values to [0, 1] on the scale."""
        return _encode(value, self.min, self.max, self.scale)

    def decode(self, unit: float) -> int:
        """A number in [0, 1] to the nearest whole number on the scale."""
        return int(np.clip(round(_decode(unit, self.min, self.max, self.scale)), self.min, self.max))


@dataclass(frozen=True, repr=False)
class Float:
    """A number between ``min`` and ``max``."""

    min: float
    max: float
    scale: Scale = "linear"
    when: Expression | None = None
    default: float | NoDefault = NoDefault.GIVEN

    def __init__(
        self,
        min: float,  # noqa: A002
        max: float,  # noqa: A002
        scale: Scale = "linear",
        when: str | None = None,
        default: Value | NoDefault = NoDefault.GIVEN,
    ) -> None:
        for bound in (min, max):
            if not is_number(bound):
                raise InputError(f"the bounds of a Float are finite numbers, not {bound!r}")
        _check_bounds("Float", min, max, scale)
        if not isinstance(default, NoDefault) and not (is_number(default) and min <= default <= max):
            raise InputError(f"default={default!r} is no number from {min!r} to {max!r}")
        vars(self).update(min=float(min), max=float(max), scale=scale, when=_condition(when), default=default)

    def __repr__(self) -> str:
        return f"Float({self.min!r}, {self.max!r}{_rest_of_range(self)})"

    def encode(self, value: Floats) -> Floats:
        """Values to [0, 1] on the scale."""
        return _encode(value, self.min, self.max, self.scale)

    def decode(self, unit: float) -> float:
        """A number in [0, 1] to a value on the scale, with no more digits than a person would write."""
        exact = _decode(unit, self.min, self.max, self.scale)
        if self.scale == "linear":
            short = round(exact, math.ceil(-math.log10(_FINEST * (self.max - self.min))))
        else:
            digits = 1 + math.ceil(-math.log10(_FINEST * math.log(self.max / self.min)))
            short = float(f"{exact:.{max(digits, 1)}g}")
        return min(max(short, self.min), self.max)


Parameter: TypeAlias = Choice | Int | Float


def _rest_of_range(parameter: Int | Float) -> str:
    return (f", scale={parameter.scale!r}" if parameter.scale != "linear" else "") + _rest(parameter)


def _rest(parameter: Parameter) -> str:
    when = "" if parameter.when is None else f", when={parameter.when.text!r}"
    return when if isinstance(parameter.default, NoDefault) else f"{when}, default={parameter.default!r}"


def _condition(when: str | None) -> Expression | None:
    return None if when is None else Expression(when)


def _check_scale(scale: str, smallest: float, largest: float) -> None:
    if not isinstance(scale, str) or scale not in _SCALES:
        raise InputError(f"scale={scale!r} is none of linear, log, log2{nearest(str(scale), _SCALES)}")
    if scale != "linear" and smallest <= 0:
        raise InputError(f"scale={scale!r} needs values above 0, but the smallest is {smallest:g}")
    if max(abs(smallest), abs(largest)) > _LARGEST:
        raise InputError(f"numbers from {smallest!r} to {largest!r} are too large to calculate with; rescale them")


def _check_bounds(kind: str, low: float, high: float, scale: str) -> None:
    if not low < high:
        raise InputError(f"{kind}({low!r}, {high!r}): min must be below max")
    _check_scale(scale, low, high)
    if not np.ptp(_SCALES[scale](np.array([low, high], dtype=float))) > 0:
        raise InputError(f"{kind}({low!r}, {high!r}): min and max are too close to tell apart on a {scale} scale")


def _encode(value: Floats, low: float, high: float, scale: str) -> Floats:
    transform = _SCALES[scale]
    ends = transform(np.array([low, high], dtype=float))
    spread = ends[1] - ends[0]
    return np.asarray((transform(np.asarray(value, dtype=float)) - ends[0]) / (spread if spread > 0 else 1.0))


def _decode(unit: float, low: float, high: float, scale: str) -> float:
    if scale == "linear":
        return low + unit * (high - low)
    return float(low * (high / low) ** unit)
