"""Ours against the best of all others on each job: whether it is ever behind, by family."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.papers.markdown import number, table
from benchmarks.peers.groups import Group
from benchmarks.peers.search import BUDGET_UNITS
from benchmarks.tables.public_jobs import family_of

OURS = "trimtuner"
LEVELS = (0.95, 0.99)
BEHIND = 1.2  # times the best of all others
FEW_JOBS = 4  # are named

PAPERS, SHIPPED, SHIPPED_ASIDE, NETS, TREES, TREES_ASIDE = (
    "the papers' jobs",
    "jobs that ship",
    "jobs that ship, kept aside",
    "neural nets on public tasks, by epochs",
    "decision trees on public tasks, by share of the data",
    "decision trees, kept aside",
)
FAMILIES = {
    **dict.fromkeys(("cnn", "rnn"), PAPERS),
    **dict.fromkeys(("digits", "flights", "linear"), SHIPPED),
    **dict.fromkeys(("epochs", "forest", "kernel"), SHIPPED_ASIDE),
    "lcb": NETS,
    **dict.fromkeys(("rpart14", "rpart24", "rpart334", "rpart1510"), TREES),
    "rpart": TREES_ASIDE,
}
TUNED_ON = (PAPERS, SHIPPED, NETS, TREES)
ASIDE = (SHIPPED_ASIDE, TREES_ASIDE)
OTHERS = "others"
ORDER = (*TUNED_ON, *ASIDE, OTHERS)
_PARTS = (("all", ORDER), ("tuned on", TUNED_ON), ("kept aside", ASIDE))


@dataclass(frozen=True)
class Standing:
    """Where we stand on one job at one level."""

    job: str
    ours: float
    best: Group
    level: float
    elsewhere: float  # money of whoever needed least in the other searches, search by search

    @property
    def ratio(self) -> float:
        """Our money by theirs."""
        return self.ours / self.best.mean(self.level)

    @property
    def fair_ratio(self) -> float:
        """Our money by that of who was best in the other searches: nobody is chosen for the luck that is counted."""
        return self.ours / self.elsewhere


def standing(job: str, groups: Sequence[Group], level: float) -> Standing | None:
    """Against whoever needed least in the mean, which is chosen with hindsight; nothing without a rival."""
    ours = next((one for one in groups if one.entrant.name == OURS), None)
    others = [one for one in groups if one.entrant.name != OURS]
    if ours is None or not others:
        return None
    best = min(others, key=lambda one: one.mean(level))
    return Standing(job, ours.mean(level), best, level, _best_elsewhere(others, level))


def _best_elsewhere(others: Sequence[Group], level: float) -> float:
    """The mean, over seeds, of what whoever was best with all other seeds needed with this one."""
    money = [[min(one, BUDGET_UNITS) for one in group.settled(level)] for group in others]
    seeds = range(len(money[0]))
    if len(seeds) < 2:
        return min(statistics.fmean(one) for one in money)
    chosen = [min(money, key=lambda one: sum(one) - one[seed])[seed] for seed in seeds]
    return statistics.fmean(chosen)


def ratios(jobs: Mapping[str, Sequence[Group]]) -> list[str]:
    """A row for each job, and what they come to."""
    found = _standings(jobs)
    if not found[LEVELS[0]]:
        return []
    by_job = sorted(zip(*found.values(), strict=True), key=lambda pair: (ORDER.index(family(pair[0].job)), pair[0].job))
    rows = [[pair[0].job, family(pair[0].job), *(cell for one in pair for cell in _cells(one))] for pair in by_job]
    header = ["job", "family"]
    for level in LEVELS:
        header += [f"{level:.0%}: ours", "best of all others", "ratio"]
    return [
        "## Against the best of all others, job by job",
        "The best of all others is chosen on each job and level with hindsight, which no user can do. Ratios are of "
        f"means, never counted as the whole budget; above {BEHIND:g} is behind (bold).",
        table(header, rows),
        "Who is best of several in a few searches was also lucky in them. *Chosen elsewhere*: against the tool that "
        "needed least with all other seeds, seed by seed: who one would take after having tried them all on this job.",
        *totals(jobs),
    ]


def totals(jobs: Mapping[str, Sequence[Group]]) -> list[str]:
    """What the ratios to the best of all others come to over the families."""
    found = _standings(jobs)
    header = ["families", "level", "jobs", "geometric mean", "worst", f"above {BEHIND:g}", "chosen elsewhere", "above"]
    return [table(header, _totals(found))] if found[LEVELS[0]] else []


def _standings(jobs: Mapping[str, Sequence[Group]]) -> dict[float, list[Standing]]:
    return {level: [one for job in jobs if (one := standing(job, jobs[job], level))] for level in LEVELS}


def each_tool(jobs: Mapping[str, Sequence[Group]]) -> list[str]:
    """Against one tool on all jobs, as who has to choose one beforehand meets it."""
    names = dict.fromkeys(one.entrant.name for groups in jobs.values() for one in groups if one.entrant.name != OURS)
    rows = [
        [name, *(_against(name, jobs, families, level) for _, families in _PARTS for level in LEVELS)] for name in names
    ]
    header = ["our money by that of", *(f"{words}: {level:.0%}" for words, _ in _PARTS for level in LEVELS)]
    return (
        ["## Against each tool", "Geometric means over jobs of the ratio of means.", table(header, rows)]
        if rows
        else []
    )


def harder_forms(forms: Mapping[str, Mapping[str, Sequence[Group]]]) -> list[str]:
    """Against each tool on jobs in other forms, and how many searches never get to the highest level."""
    entrants = dict.fromkeys(one.entrant.name for jobs in forms.values() for groups in jobs.values() for one in groups)
    if OURS not in entrants:
        return []
    rows = []
    for form, jobs in forms.items():
        cells = []
        for name in entrants:
            found = [one for groups in jobs.values() for one in groups if one.entrant.name == name]
            never = sum(len(one.searches) - one.count(LEVELS[-1]) for one in found)
            of_money = " / ".join(_against(name, jobs, ORDER, level) for level in LEVELS) if name != OURS else ""
            cells.append(f"{of_money} ({never} of {sum(len(one.searches) for one in found)} never)".strip())
        rows.append([form, ", ".join(jobs) if len(jobs) < FEW_JOBS else str(len(jobs)), *cells])
    return [table(["form", "jobs", *entrants], rows)]


def _against(name: str, jobs: Mapping[str, Sequence[Group]], families: Sequence[str], level: float) -> str:
    found = []
    for job, groups in jobs.items():
        means = {one.entrant.name: one.mean(level) for one in groups}
        if family(job) in families and {OURS, name} <= means.keys():
            found.append(means[OURS] / means[name])
    return number(statistics.geometric_mean(found), 2) if found else "-"


def _totals(found: Mapping[float, Sequence[Standing]]) -> list[list[str]]:
    rows = []
    for words, families in _PARTS:
        for level, all_jobs in found.items():
            here = [one for one in all_jobs if family(one.job) in families]
            if here:
                worst = max(here, key=lambda one: one.ratio)
                mean = statistics.geometric_mean(one.ratio for one in here)
                behind = sum(one.ratio > BEHIND for one in here)
                fair = statistics.geometric_mean(one.fair_ratio for one in here)
                behind_fairly = sum(one.fair_ratio > BEHIND for one in here)
                rows.append(
                    [words, f"{level:.0%}", str(len(here)), number(mean, 2), f"{number(worst.ratio, 2)} ({worst.job})",
                     str(behind), number(fair, 2), str(behind_fairly)]
                )  # fmt: skip
    return rows


def _cells(one: Standing) -> list[str]:
    ratio = number(one.ratio, 2)
    theirs = f"{number(one.best.mean(one.level), 2)} ({one.best.entrant.name})"
    return [number(one.ours, 2), theirs, f"**{ratio}**" if one.ratio > BEHIND else ratio]


def family(job: str) -> str:
    """Which of the families a job belongs to, by its name."""
    return FAMILIES.get(job, FAMILIES.get(family_of(job), OTHERS))
