"""Each claim of the papers with theirs, ours and a verdict that follows from the figures by a stated rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.papers.curves import Estimate
from benchmarks.papers.markdown import table
from benchmarks.papers.notes import WHY

CLOSE = 0.8
POINTS = 5.0
SAME_WITHIN = 1.25

RULES = (
    f"*Ratios* (x times more): **holds** when ours is above 1 by at least {CLOSE:g} of what theirs is, or theirs lies "
    "within our 90 % bootstrap interval, and the whole interval is above 1; **partly** when ours is smaller but the "
    "whole interval is above 1; **undecided** when the interval holds both theirs and 1; otherwise **does not hold**. "
    'Claims of "up to" take the job where our ratio is largest. '
    f"*Reductions* (x % less): the same with a difference of at most {POINTS:g} percentage points, and 0 for 1. "
    f"*About the same*: within a factor of {SAME_WITHIN:g}, or of what the claim says. *Counts*: equal. "
    "Claims on several jobs hold when they hold on each, and partly when on some. A claim that does not hold is a "
    "finding."
)


class Verdict(StrEnum):
    """What our figures say of a claim."""

    HOLDS = "holds"
    PARTLY = "partly"
    UNDECIDED = "undecided"
    FAILS = "**does not hold**"
    UNKNOWN = "not run"


@dataclass(frozen=True)
class Claim:
    """One row of the table at the top of the report."""

    name: str
    source: str
    statement: str
    theirs: str
    ours: str
    verdict: Verdict


def claims_table(claims: Sequence[Claim]) -> str:
    """All claims, with the reasons we know."""
    rows = [
        [str(place), f"{one.statement} ({one.source})", one.theirs, one.ours, one.verdict.value, WHY.get(one.name, "")]
        for place, one in enumerate(claims, start=1)
    ]
    return table(["", "claim", "theirs", "ours", "verdict", "why"], rows)


def judge_ratio(theirs: float, ours: Estimate) -> Verdict:
    """More by at least most of what they say; see RULES."""
    return _judge(theirs, ours, enough=1.0 + CLOSE * (theirs - 1.0), nothing=1.0)


def judge_reduction(theirs_percent: float, ours: Estimate) -> Verdict:
    """Less by at least most of what they say, in per cent."""
    return _judge(theirs_percent, ours, enough=theirs_percent - POINTS, nothing=0.0)


def _judge(theirs: float, ours: Estimate, enough: float, nothing: float) -> Verdict:
    is_as_much = ours.value >= enough or ours.low <= theirs <= ours.high
    if ours.low > nothing:
        return Verdict.HOLDS if is_as_much else Verdict.PARTLY
    return Verdict.UNDECIDED if is_as_much else Verdict.FAILS


def judge_same(factor: float, ratio: float) -> Verdict:
    """Neither more nor less by more than a factor."""
    return Verdict.HOLDS if 1.0 / factor <= ratio <= factor else Verdict.FAILS


def judge_all(verdicts: Sequence[Verdict]) -> Verdict:
    """Of a claim on several jobs."""
    known = [verdict for verdict in verdicts if verdict is not Verdict.UNKNOWN]
    if not known:
        return Verdict.UNKNOWN
    if all(verdict is Verdict.HOLDS for verdict in known):
        return Verdict.HOLDS
    if any(verdict in (Verdict.HOLDS, Verdict.PARTLY) for verdict in known):
        return Verdict.PARTLY
    return Verdict.FAILS if Verdict.FAILS in known else Verdict.UNDECIDED


def largest(estimates: Sequence[Estimate]) -> Estimate:
    """The one for "up to"; an unknown one (nobody got there) only where there is no other."""
    return max(estimates, key=lambda one: -math.inf if math.isnan(one.value) else one.value)


Judged = tuple[str, Verdict]  # our figure on one job, and what it says


def claim_on_jobs(
    name: str, source: str, statement: str, theirs: str, judged: Iterator[Judged] | Sequence[Judged]
) -> Claim:
    """A claim whose figures are given job by job."""
    found = list(judged)
    verdict = judge_all([one for _, one in found])
    return Claim(name, source, statement, theirs, "; ".join(text for text, _ in found) or "-", verdict)


def claim_up_to(
    name: str,
    source: str,
    statement: str,
    theirs: float,
    found: Sequence[tuple[str, Estimate]],
    show: Callable[[Estimate], str],
) -> Claim:
    """A claim on the job with the largest ratio; the others are shown too."""
    ours = "; ".join(f"{title}: {show(estimate)}" for title, estimate in found) or "-"
    verdict = judge_ratio(theirs, largest([one for _, one in found])) if found else Verdict.UNKNOWN
    return Claim(name, source, statement, f"up to {theirs:g} \N{MULTIPLICATION SIGN}", ours, verdict)
