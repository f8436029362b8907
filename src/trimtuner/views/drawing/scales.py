"""From numbers to places on the paper, and the numbers that are worth writing beside an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["linear", "log"]

_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    """An axis: the numbers from ``low`` to ``high`` on the places from ``begin`` to ``end``."""

    low: float
    high: float
    begin: float
    end: float
    kind: Kind = "linear"

    def __call__(self, value: float) -> float:
        """The place; numbers beyond the axis are put at its end."""
        low, high, at = (self._seen(one) for one in (self.low, self.high, min(max(value, self.low), self.high)))
        return self.begin + (self.end - self.begin) * ((at - low) / (high - low) if high > low else 0.5)

    @property
    def written(self) -> str:
        """As the script of the page reads it, to zoom."""
        return f"{self.low!r} {self.high!r} {self.begin:g} {self.end:g} {self.kind}"

    def _seen(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.kind == "log" else value

    def ticks(self, about: int = 5) -> list[float]:
        """About so many round numbers on the axis, rising."""
        return (
            _log_ticks(self.low, self.high, about) if self.kind == "log" else _linear_ticks(self.low, self.high, about)
        )


def scale_for(
    values: Sequence[float], begin: float, end: float, kind: Kind = "linear", from_zero: float = 0.5
) -> Scale:
    """An axis that holds the values with some air, from 0 where they begin below that share of their largest."""
    finite = [value for value in values if math.isfinite(value) and (kind == "linear" or value > 0)]
    if not finite:
        return Scale(0.0 if kind == "linear" else 0.1, 1.0, begin, end, kind)
    low, high = min(finite), max(finite)
    if kind == "log":
        room = (high / low) ** 0.05 if high > low else 2.0
        return Scale(low / room, high * room, begin, end, kind)
    if 0 <= low < from_zero * high:
        return Scale(0.0, high * 1.05, begin, end)
    room = 0.06 * (high - low) if high > low else abs(high) * 0.1 or 1.0
    return Scale(low - room, high + room, begin, end)


def kind_for(values: Sequence[float], times: float = 30.0) -> Kind:
    """A logarithmic axis where positive values spread by more than so many times, else a plain one."""
    is_positive = bool(values) and all(value > 0 and math.isfinite(value) for value in values)
    return "log" if is_positive and max(values) > times * min(values) else "linear"


def tick_text(value: float, others: Sequence[float]) -> str:
    """With as many digits as it takes to tell it from its neighbours."""
    for digits in range(1, 8):
        shown = [f"{one:.{digits}g}" for one in others]
        if len(set(shown)) == len(shown) and all(
            abs(float(s) - o) <= 1e-9 * max(abs(o), 1e-300) for s, o in zip(shown, others, strict=True)
        ):
            return _plain(f"{value:.{digits}g}")
    return _plain(f"{value:g}")


def _plain(text: str) -> str:
    """Without an exponent where the number is short without it too."""
    plain = f"{float(text):f}".rstrip("0").rstrip(".")
    return plain if len(plain) <= 8 and float(plain) == float(text) else f"{float(text):g}"


def _linear_ticks(low: float, high: float, about: int) -> list[float]:
    if high <= low:
        return [low]
    raw = (high - low) / max(about, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * min(_ROUND, key=lambda one: abs(math.log(one * power / raw)))
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    return [round((first + number) * step, 12) for number in range(max(count, 0))]


def _log_ticks(low: float, high: float, about: int) -> list[float]:
    """Powers of ten; where these are few, also their doubles and fives."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    found: list[float] = []
    for times in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
        ticks = (one * 10.0**power for power in range(first, last + 1) for one in times)
        found = [tick for tick in ticks if low <= tick <= high]
        if len(found) >= min(about, 4):
            break
    if len(found) < 2:
        return _linear_ticks(low, high, about)
    skip = math.ceil(len(found) / (about + 3))
    return found[::skip]
