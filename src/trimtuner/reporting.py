"""What a training script says to trimtuner, in plain Python: quick to import, and nothing else is needed.

A script that would rather not import trimtuner prints the line itself:
``print("::metric " + json.dumps({"accuracy": 0.91, "fraction": 0.25}), flush=True)``.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsFloat

from trimtuner.errors import InputError

_PREFIX = "::metric "
_FRACTION = "fraction"
_MEASURED_BY_US = ("time", "cost")
_ROUNDING = 1e-9  # what a share may lack after a division


def report(**metrics: SupportsFloat) -> None:
    """Tell trimtuner what was measured: ``report(accuracy=0.91)``, or on the way ``report(…, fraction=0.25)``.

    Numbers of numpy and torch are taken too. Nothing is printed when one of them is no finite number.
    """
    numbers = {name: _checked(name, value) for name, value in metrics.items()}
    if not numbers.keys() - {_FRACTION}:
        raise InputError("there is nothing to report; name what was measured: report(accuracy=0.91)")
    if _FRACTION in numbers:
        _check_share(numbers[_FRACTION])
    stream = sys.__stdout__  # whoever redirected sys.stdout meant the chatter of a library, not this
    if stream is None:
        raise InputError(
            "there is no standard output to report to; in the job file, 'run.metrics: {file: …}' names a file"
        )
    # A progress bar may have left its line unfinished, and only a line of its own is understood.
    stream.write(f"\n{_PREFIX}{json.dumps(numbers)}\n")
    stream.flush()


def read_shares(text: str) -> tuple[float, ...]:
    """The shares that ``{snapshots}`` stands for in a command: ``0.1,0.5``; none where it is empty."""
    try:
        return _sorted_shares(float(word) for word in text.split(",") if word.strip())
    except ValueError as error:
        raise InputError(f"{text!r} lists no shares of the data, such as 0.1,0.5: {error}") from None


@dataclass(frozen=True)
class Snapshots:
    """The shares worth a report on the way to ``fraction``, in a run of so many steps: rows, batches or epochs.

    With ``Snapshots(0.5, shares, total)``, all of the run's steps are half of the data.
    """

    fraction: float
    shares: tuple[float, ...]  # smaller than the fraction, in order
    total: int

    def __init__(self, fraction: float, shares: Iterable[float], total: int) -> None:
        _check_share(fraction)
        if total < 1:
            raise InputError(f"a run of {total} steps trains nothing")
        object.__setattr__(self, "fraction", fraction)
        object.__setattr__(self, "shares", tuple(one for one in _sorted_shares(shares) if one < fraction))
        object.__setattr__(self, "total", total)

    def passed(self, before: int, after: int) -> tuple[float, ...]:
        """The shares that were reached when the steps done went from ``before`` to ``after``."""
        return tuple(share for share in self.shares if before < self._steps(share) <= after)

    def _steps(self, share: float) -> float:
        """How many steps reach the share; the whole ones before it do not."""
        return math.ceil(share / self.fraction * self.total * (1 - _ROUNDING))


def _sorted_shares(shares: Iterable[float]) -> tuple[float, ...]:
    distinct = sorted(set(shares))
    for share in distinct:
        _check_share(share)
    return tuple(distinct)


def _check_share(share: float) -> None:
    if not 0 < share <= 1:
        raise InputError(f"fraction {share!r} is outside (0, 1]; it is the share of the data")


def _checked(name: str, value: SupportsFloat) -> float:
    if name in _MEASURED_BY_US:
        raise InputError(f"{name} is measured by trimtuner; report your own under another name, such as my_{name}")
    return finite_metric(name, value, "end with an exit code other than 0 if the training diverged")


def finite_metric(name: str, value: SupportsFloat, advice: str) -> float:
    """The value of a metric as a number; ``advice`` is for one that is not finite."""
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"{name!r} is no name for a metric; use letters, digits and underscores")
    number = plain_number(value)
    if number is None:
        raise InputError(f"{name}={value!r} is not a number")
    if not math.isfinite(number):
        raise InputError(f"{name}={number} is not finite; {advice}")
    return number


def plain_number(value: object) -> float | None:
    """The value as a number of Python's, as numpy and torch have others; None for what is none, texts and true too."""
    try:
        # The question is whether it is a number.
        return None if isinstance(value, str | bytes | bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
