"""Each claim of the papers with theirs, ours and verdicts that follow from the figures by a stated rule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.papers.curves import Estimate
from benchmarks.papers.markdown import ratio_with_interval, table
from benchmarks.papers.notes import SEEN

CLOSE = 1.25

RULES = (
    "**How verdicts are made.** Every figure of ours is a ratio with its 90 % bootstrap interval over seeds, in "
    "brackets; each job is judged for itself. Where the papers say *x times more* (*x % less* is 1 / (1 - x) times "
    "more): **reversed** when the whole interval is below 1; **undecided** when it holds both 1 and theirs; **not "
    "seen** when it holds 1 and not theirs; else **as theirs** when it holds theirs or ours is within a factor of "
    f"{CLOSE:g} of it, and **stronger** or **weaker** when ours is above or below that. Where they say *more* without "
    "a number: as theirs when the whole interval is above 1, reversed when it is below, else undecided. Where they say "
    f"*no difference*, or give a value: as theirs when the whole interval is within a factor of {CLOSE:g} (or what the "
    "claim says) of it, **differs** when all of it is outside, else undecided. *Always* and *never*: as theirs when it "
    "is so, else weaker. A claim of *up to* is judged on the job where our ratio is largest, and on another where it "
    "is reversed. *never* in a figure: a level that is not reached costs infinitely much. Medians and percentiles are "
    "the usual ones (the median of an even number is half-way between the middle two)."
)


class Verdict(StrEnum):
    """What our figures say of a claim."""

    STRONGER = "stronger"
    AS_THEIRS = "as theirs"
    WEAKER = "weaker"
    NOT_SEEN = "not seen"
    REVERSED = "**reversed**"
    DIFFERS = "**differs**"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Finding:
    """Our figure on one job; without a verdict where the claim is judged on another."""

    where: str
    ours: str
    verdict: Verdict | None


@dataclass(frozen=True)
class Claim:
    """One row of a table of claims."""

    name: str
    source: str
    statement: str
    theirs: str
    findings: tuple[Finding, ...]

    @property
    def ours(self) -> str:
        """Our figures, job by job."""
        return "; ".join(f"{one.where}: {one.ours}" for one in self.findings) or "-"

    @property
    def verdict(self) -> str:
        """One word where it is the same on every job."""
        judged = [(one.where, one.verdict) for one in self.findings if one.verdict is not None]
        if not judged:
            return "not run"
        if len({verdict for _, verdict in judged}) == 1 and len(judged) == len(self.findings):
            return str(judged[0][1])
        return "; ".join(f"{where}: {verdict}" for where, verdict in judged)


def claims_table(claims: Sequence[Claim]) -> str:
    """All claims, with what was seen."""
    rows = [
        [str(place), f"{one.statement} ({one.source})", one.theirs, one.ours, one.verdict, SEEN.get(one.name, "")]
        for place, one in enumerate(claims, start=1)
    ]
    return table(["", "claim", "theirs", "ours", "verdict", "what was seen"], rows)


def judge_ratio(theirs: float, ours: Estimate) -> Verdict:
    """Of so many times more; see RULES."""
    holds_theirs, holds_none = (ours.low <= value <= ours.high for value in (theirs, 1.0))
    if ours.high < 1.0:
        return Verdict.REVERSED
    if math.isnan(ours.value) or (holds_none and holds_theirs):
        return Verdict.UNDECIDED
    if holds_none:
        return Verdict.NOT_SEEN
    if holds_theirs or theirs / CLOSE <= ours.value <= theirs * CLOSE:
        return Verdict.AS_THEIRS
    return Verdict.STRONGER if ours.value > theirs else Verdict.WEAKER


def judge_more(ours: Estimate) -> Verdict:
    """Of more without a number."""
    if ours.low > 1.0:
        return Verdict.AS_THEIRS
    return Verdict.REVERSED if ours.high < 1.0 else Verdict.UNDECIDED


def judge_same(theirs: float, ours: Estimate, factor: float = CLOSE) -> Verdict:
    """Of a value, or (1) of no difference."""
    low, high = theirs / factor, theirs * factor
    if low <= ours.low and ours.high <= high:
        return Verdict.AS_THEIRS
    return Verdict.DIFFERS if ours.high < low or ours.low > high else Verdict.UNDECIDED


def judge_at_most(factor: float, ours: Estimate) -> Verdict:
    """Of no more, within a factor; less is as good."""
    if ours.high <= factor:
        return Verdict.AS_THEIRS
    return Verdict.REVERSED if ours.low > factor else Verdict.UNDECIDED


def times(where: str, theirs: float, ours: Estimate, more: str = "") -> Finding:
    """A ratio with its verdict."""
    return Finding(where, f"{ratio_with_interval(ours)}{more}", judge_ratio(theirs, ours))


def claim(name: str, source: str, statement: str, theirs: str, findings: Iterator[Finding]) -> Claim:
    """A claim whose figures are given job by job."""
    return Claim(name, source, statement, theirs, tuple(findings))


def up_to(theirs: float, found: Sequence[tuple[str, Estimate, str]]) -> Iterator[Finding]:
    """Judged on the job with the largest ratio; on another only where it is reversed."""
    most = max((_or_least(one) for _, one, _ in found), default=math.nan)
    for where, ours, more in found:
        verdict = judge_ratio(theirs, ours)
        is_judged = _or_least(ours) == most or verdict is Verdict.REVERSED
        yield Finding(where, f"{ratio_with_interval(ours)}{more}", verdict if is_judged else None)


def _or_least(estimate: Estimate) -> float:
    return -math.inf if math.isnan(estimate.value) else estimate.value
