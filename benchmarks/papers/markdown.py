"""Pieces of a Markdown report."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from benchmarks.papers.curves import Estimate, median, percentile

TIMES = " \N{MULTIPLICATION SIGN}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar within a cell would end it, so it is escaped."""
    lines = [_row(header), "|" + "---|" * len(header), *(_row(row) for row in rows)]
    return "\n".join(lines)


def picture(path: str, description: str) -> str:
    """A plot, with what it shows for who cannot see it."""
    return f"![{description}]({path})"


def number(value: float, digits: int = 3) -> str:
    """To so many significant digits; ``never`` for infinity, a dash for what is not known."""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "never"
    if value.is_integer() and abs(value) < 1e6:
        return str(int(value))
    text = f"{value:#.{digits}g}"
    if "e" in text:
        return f"{value:.{digits}g}"
    return text.rstrip(".")


def multiple(value: float) -> str:
    """A ratio as people write it: ``3.2 ×``."""
    return number(value, 2 if value < 10 else 3) + (TIMES if math.isfinite(value) else "")


def ratio_with_interval(estimate: Estimate) -> str:
    """A ratio with the ends of its interval: ``3.2 × [2.1, 5.0]``."""
    ends = [multiple(end).removesuffix(TIMES) for end in (estimate.low, estimate.high)]
    return f"{multiple(estimate.value)} [{ends[0]}, {ends[1]}]"


def percent_with_interval(estimate: Estimate) -> str:
    """A share with the ends of its interval: ``58.3 % [50.1, 63.0]``."""
    ends = [percent(end).removesuffix(" %") for end in (estimate.low, estimate.high)]
    return f"{percent(estimate.value)} [{ends[0]}, {ends[1]}]"


def percent(value: float) -> str:
    """A percentage, to a tenth."""
    return number(value) if not math.isfinite(value) else f"{value:.1f} %"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def centre_and_ends(values: Sequence[float]) -> str:
    """Median, then 10th and 90th percentile over the searches."""
    low, high = (number(percentile(values, share)) for share in (10.0, 90.0))
    return f"{number(median(values))} [{low}, {high}]"


def median_and_worse(values: Sequence[float]) -> str:
    """Median and 90th percentile over the searches, which is what the thesis plots."""
    return f"{number(median(values))} / {number(percentile(values, 90.0))}"


def mean_and_deviation(values: Sequence[float]) -> str:
    """Mean ± standard deviation over the searches."""
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{number(statistics.fmean(values))} ± {number(spread, 2)}"
