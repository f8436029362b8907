"""Numbers and configurations in words, the same wherever they are shown."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trimtuner.errors import TrimTunerError
from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import COST, TIME
from trimtuner.problem.values import written
from trimtuner.tuning.recommendation import Estimate

_LEAST_USD = 1e-6
_CENTS_BELOW = 0.01  # USD: a sum with two noughts behind the point is read in cents


@dataclass(frozen=True)
class Signs:
    """What pictures in a terminal are made of: from low to high, and for what is spent, reserved and left."""

    levels: str
    full: str
    half: str
    empty: str


BLOCKS = Signs("▁▂▃▄▅▆▇█", "█", "▒", "░")
ASCII = Signs("_.-=+*#@", "#", "+", ".")


def signs_for(encoding: str | None) -> Signs:
    """What a terminal of that encoding can show."""
    return BLOCKS if (encoding or "ascii").lower().startswith("utf") else ASCII


def usd(amount: float) -> str:
    """Money in the unit that suits it, with as many digits as small sums need, and none that one must count."""
    if 0 < abs(amount) < _LEAST_USD:
        return f"under {plain(100 * _LEAST_USD, 1)} cents"
    if 0 < abs(amount) < _CENTS_BELOW:
        return _cents(amount)
    return f"{amount:,.2f} USD" if abs(amount) >= 10 else f"{plain(amount, 3)} USD"


def usd_together(*amounts: float) -> tuple[str, ...]:
    """The sums of one sentence: all in cents where one of them needs that and none is above a dollar."""
    if max(amounts) <= 1.0 and any(0 < abs(one) < _CENTS_BELOW for one in amounts):
        return tuple(usd(one) if 0 < abs(one) < _LEAST_USD else _cents(one) for one in amounts)
    return tuple(usd(one) for one in amounts)


def _cents(amount: float) -> str:
    shown = plain(100 * amount, 3)
    return f"{shown} {'cent' if shown == '1' else 'cents'}"


def seconds(amount: float) -> str:
    """A duration in the unit that suits it."""
    if amount < 120:
        return f"{amount:.3g} s"
    if amount < 7200:
        return f"{amount / 60:.1f} min"
    return f"{amount / 3600:.1f} h" if amount < 172_800 else f"{amount / 86_400:.1f} days"


def share(fraction: float) -> str:
    """A fraction of the data."""
    return "all" if fraction == 1.0 else f"{100 * fraction:.3g} %"


def number(value: float | None) -> str:
    """A number without a unit; a dash where there is none."""
    return "-" if value is None else f"{value:.4g}"


def cell(value: Value | None) -> str:
    """A value of a table of numbers: six digits, no unit; nothing where there is none."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else written(value)


def plain(value: float, digits: int) -> str:
    """So many significant digits, written out as long as that is shorter than a line of noughts."""
    shown = f"{value:.{digits}g}"
    if "e" not in shown or not 1e-9 <= abs(value) < 1e9:
        return shown
    return f"{float(shown):.15f}".rstrip("0").rstrip(".")


def metric(name: str, value: float) -> str:
    """A number in the unit of its metric."""
    return usd(value) if name == COST else seconds(value) if name == TIME else number(value)


def estimate(name: str, found: Estimate | None) -> str:
    """A mean with its interval; what was measured has none."""
    if found is None:
        return "-"
    interval = "" if found.low == found.high else f" ({metric(name, found.low)} to {metric(name, found.high)})"
    return f"{metric(name, found.mean)}{interval}"


def why_over(said: str) -> str:
    """Why a search is over, of what its run said, without what is said beside it anyway."""
    return said.removeprefix("the search is over: ").removesuffix("; take the recommendation")


def times(count: int) -> str:
    """How often something happened, in words."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def changed(count: int) -> str:
    """How often a recommendation changed, in words."""
    return f"changed {times(count)}" if count else "never changed"


def count_of(count: int, thing: str) -> str:
    """So many things, with an s where there are several."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def sentence(text: str) -> str:
    """With a capital, whatever comes after it."""
    return f"{text[:1].upper()}{text[1:]}"


def chance(probability: float) -> str:
    """A probability; never a certainty that rounding made."""
    if 0.995 <= probability < 1.0:
        return ">0.99"
    return "<0.01" if 0.0 < probability < 0.005 else f"{probability:.2f}"


def configuration(config: Mapping[str, Value]) -> str:
    """A configuration in one line."""
    return " ".join(f"{name}={value_text(value)}" for name, value in config.items())


def placed(config: Mapping[str, Value], fraction: float) -> str:
    """A configuration with the share of the data, where that is not all."""
    where = "" if fraction == 1.0 else f" on {share(fraction)} of the data"
    return f"{configuration(config)}{where}"


def value_text(value: Value) -> str:
    """A value of a parameter."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def machines(config: Mapping[str, Value]) -> str | None:
    """The machines of a configuration, such as ``4 x t2.medium spot``; nothing where it names none."""
    if "vm_type" not in config:
        return None
    market = f" {config['market']}" if config.get("market") == "spot" else ""
    return f"{config.get('vm_count', 1)} x {config['vm_type']}{market}"


def words_instead(error: Exception) -> str:
    """What stands in the place of what could not be shown: an error of ours says itself what to do."""
    if isinstance(error, TrimTunerError):
        return sentence(f"{error}.")
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"This could not be shown ({type(error).__name__}: {error}; {Path(frame.filename).name}:{frame.lineno}). It is "
        "a fault of trimtuner: please report this line. The study, its record and all the rest are not touched by it."
    )
