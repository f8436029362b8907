"""Which searches each figure and table of the papers needs.

All of them take about two and a half hours of one core (seconds a search, one thread: random, CherryPick, Lynceus and
Nephele 0.2 to 1, with a horizon of 1 two to eight, of 2 eight to fifteen; TrimTuner 3 to 8, with DIRECT 17; FABOLAS 7,
with a hundred trials 19, Fabulinus 20 to 24).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from benchmarks.papers.jobs import Job
from benchmarks.papers.searches import Goal, Search, longest_of_each
from trimtuner.errors import InputError, nearest

TRIMTUNER_TRIALS, TRIMTUNER_SEEDS = 44, 10
SHARES_SEEDS = 30  # Fig. 4; the paper has ten, which do not tell its lines apart
LONGER_TRIALS = 3 * TRIMTUNER_TRIALS  # about the money of a filtered search, for one that tests on less data
NEPHELE_TRIALS, NEPHELE_SEEDS = 1440, 100  # the budget ends these searches, not the number of trials
FABULINUS_TRIALS, FABULINUS_SEEDS = 100, 10
FABULINUS_INITIAL = 9  # 3 % of 288 configurations
FABULINUS_INITIAL_TRIALS = 4 * FABULINUS_INITIAL  # each at the four fractions below 1, where those are tested
# Most trials of these are on the smallest fraction: 44 of them would end within the first bracket.
HALVING_TRIALS = 200

FIRST_SEED = 7000  # methods were tuned on other seeds, and the report before this one had others

TREES = (5, 10, 20)
HORIZONS = (0, 1, 2)


class Experiment(StrEnum):
    """A set of searches that some figures and tables share."""

    METHODS = "methods"  # TrimTuner paper, section IV-A
    FILTERS = "filters"  # section IV-B
    TREES = "trees"  # thesis, Figs. 6.1 to 6.3
    INITIAL_BUDGETS = "initial budgets"  # Figs. 6.4 to 6.6
    OPTIMISERS = "optimisers"  # Figs. 6.10 to 6.12
    HORIZONS = "horizons"  # Fig. 6.13
    FABULINUS = "fabulinus"  # Figs. 7.1 to 7.3


FIGURES: Mapping[str, Experiment | None] = {
    "table2": None,
    "fig1": Experiment.METHODS,
    "fig2": Experiment.METHODS,
    "table3": Experiment.METHODS,
    "fig3": Experiment.FILTERS,
    "table4": Experiment.FILTERS,
    "fig4": Experiment.FILTERS,
    **{f"table6.{number}": None for number in (1, 2, 3, 4, 5)},
    **{f"fig6.{number}": Experiment.TREES for number in (1, 2, 3)},
    **{f"fig6.{number}": Experiment.INITIAL_BUDGETS for number in (4, 5, 6)},
    **{f"fig6.{number}": None for number in (7, 8, 9)},
    **{f"fig6.{number}": Experiment.OPTIMISERS for number in (10, 11, 12)},
    "fig6.13": Experiment.HORIZONS,
    "table7.1": None,
    **{f"fig7.{number}": Experiment.FABULINUS for number in (1, 2, 3)},
}
GROUPS: Mapping[str, tuple[Experiment, ...]] = {
    "static": (),
    "trimtuner": (Experiment.METHODS, Experiment.FILTERS),
    "nephele": (Experiment.TREES, Experiment.INITIAL_BUDGETS, Experiment.OPTIMISERS, Experiment.HORIZONS),
    "fabulinus": (Experiment.FABULINUS,),
}


@dataclass(frozen=True)
class Line:
    """One line of a figure: the same search with several seeds."""

    panel: str
    label: str
    searches: tuple[Search, ...]
    initial: int  # trials before a model is used; 0 where money decides, or there is no model


@dataclass(frozen=True)
class Plan:
    """What to run: the full form, or a smaller one."""

    jobs: tuple[Job, ...]
    experiments: tuple[Experiment, ...]
    most_seeds: int
    most_trials: int

    def lines(self, experiment: Experiment, job: Job) -> list[Line]:
        """The lines of an experiment for one job; none where the papers (and so we) did not run it."""
        if experiment not in self.experiments:
            return []
        return [
            Line(panel, label, tuple(self._searches(job, spec)), spec.initial)
            for panel, label, spec in _LINES_OF[experiment](job)
        ]

    def searches(self) -> list[Search]:
        """Every search once: seed by seed, so that a part of the run is a smaller version of the whole; cheap first.

        Lookahead with more than ten seeds comes last: it takes longer than all the others.
        """
        wanted = [
            search
            for experiment in self.experiments
            for job in self.jobs
            for line in self.lines(experiment, job)
            for search in line.searches
        ]
        return sorted(longest_of_each(wanted), key=_turn)

    def _searches(self, job: Job, spec: _Spec) -> Iterator[Search]:
        for seed in range(FIRST_SEED, FIRST_SEED + min(spec.seeds, self.most_seeds)):
            yield Search(
                job,
                spec.method,
                seed,
                spec.goal,
                min(spec.trials, self.most_trials),
                job.budget if spec.goal is Goal.COST else None,
                spec.is_on_full_data,
                spec.has_snapshots,
            )


def experiments_named(names: Sequence[str]) -> tuple[Experiment, ...]:
    """The experiments behind figures (``fig6.10``), tables (``table4``) or groups (``nephele``)."""
    chosen: set[Experiment] = set()
    for name in names:
        if name in GROUPS:
            chosen.update(GROUPS[name])
        elif name not in FIGURES:
            known = [*GROUPS, *FIGURES]
            raise InputError(f"--only {name}: known are {', '.join(known)}{nearest(name, known)}")
        elif (experiment := FIGURES[name]) is not None:
            chosen.add(experiment)
    return tuple(experiment for experiment in Experiment if experiment in chosen)


@dataclass(frozen=True)
class _Spec:
    method: str
    goal: Goal
    trials: int
    seeds: int
    is_on_full_data: bool = False
    has_snapshots: bool = True
    initial: int = 0


_Lines = Iterator[tuple[str, str, _Spec]]


def _trimtuner(method: str, trials: int = TRIMTUNER_TRIALS, initial: int = 1) -> _Spec:
    """One initial run, on half of the data, measures the smaller fractions on its way."""
    return _Spec(method, Goal.ACCURACY, trials, TRIMTUNER_SEEDS, initial=initial)


def _fabulinus(method: str, initial: int = FABULINUS_INITIAL_TRIALS) -> _Spec:
    """The thesis pays for every fraction of an initial configuration, where the TrimTuner paper pays for one run."""
    return _Spec(method, Goal.ACCURACY, FABULINUS_TRIALS, FABULINUS_SEEDS, has_snapshots=False, initial=initial)


def _lines_of_methods(job: Job) -> _Lines:
    yield job.title, "TrimTuner (DT)", _trimtuner("trimtuner-dt")
    yield job.title, "TrimTuner (GP)", _trimtuner("trimtuner-gp")
    yield job.title, "EIc/USD", _trimtuner("eic-usd", initial=4)
    yield job.title, "EIc", _trimtuner("eic", initial=4)
    yield job.title, "FABOLAS", _trimtuner("fabolas:ignore_constraints=true")
    yield job.title, "Random", _trimtuner("random", initial=0)
    for model, method in (("DT", "trimtuner-dt"), ("GP", "trimtuner-gp")):
        yield job.title, f"TrimTuner ({model}) to the letter*", _trimtuner(f"{method}:{LITERAL}")
    yield job.title, "trimtuner (default)*", _trimtuner("trimtuner", initial=3)
    yield job.title, "Hyperband*", _trimtuner("hyperband", HALVING_TRIALS, initial=0)
    yield job.title, "BOHB*", _trimtuner("bohb", HALVING_TRIALS, initial=0)


LITERAL = "literal=true"  # Eq. 5 as it is printed
FILTERS: Mapping[str, str] = {
    "CEA 10 %": "filter=cea,beta=0.1",
    "CMA-ES 10 %": "filter=cmaes,beta=0.1",
    "DIRECT 10 %": "filter=direct,beta=0.1",
    "random 10 %": "filter=random,beta=0.1",
    "CEA 1 %": "filter=cea,beta=0.01",
    "CEA 20 %": "filter=cea,beta=0.2",
    "no filter": "filter=none",
}


SHARES = ("CEA 1 %", "CEA 10 %", "CEA 20 %", "no filter")  # the lines of Fig. 4
LONGER = f"no filter, {LONGER_TRIALS} trials*"
LETTER = "DT to the letter"


def _lines_of_filters(job: Job) -> _Lines:
    if job.name != "rnn":  # Figs. 3 and 4 and Table IV are for rnn only
        return
    for model, method in (("GP", "trimtuner-gp"), ("DT", "trimtuner-dt")):
        for label, options in FILTERS.items():
            spec = _trimtuner(_filtered(method, label, options))
            yield model, label, replace(spec, seeds=SHARES_SEEDS) if model == "DT" and label in SHARES else spec
    for label in SHARES:
        yield LETTER, label, _trimtuner(_filtered(f"trimtuner-dt:{LITERAL}", label, FILTERS[label]))
    yield "DT", LONGER, _trimtuner("trimtuner-dt:filter=none", LONGER_TRIALS)


def _filtered(method: str, label: str, options: str) -> str:
    """The methods' own filter is left unsaid: the same searches as in Fig. 1."""
    if label == "CEA 10 %":
        return method
    return f"{method}{',' if ':' in method else ':'}{options}"


def _nephele(horizon: int, trees: int, budget: float) -> _Spec:
    text = f"nephele:horizon={horizon},trees={trees},initial_budget={budget:g}"
    return _Spec(text, Goal.COST, NEPHELE_TRIALS, NEPHELE_SEEDS)


def _lynceus(trees: int, budget: float) -> _Spec:
    text = f"lynceus:horizon=0,trees={trees},initial_budget={budget:g}"
    return _Spec(text, Goal.COST, NEPHELE_TRIALS, NEPHELE_SEEDS, is_on_full_data=True)


def _cherrypick(trees: int, budget: float) -> _Spec:
    """With trees, whose number the thesis varies, and no stop of its own: the budget ends all searches alike."""
    text = f"cherrypick:model=trees,trees={trees},initial_budget={budget:g},stop_below=0"
    return _Spec(text, Goal.COST, NEPHELE_TRIALS, NEPHELE_SEEDS, is_on_full_data=True)


def _lines_of_trees(job: Job) -> _Lines:
    for trees in TREES:
        label = f"{trees} trees"
        yield "Nephele", label, _nephele(0, trees, job.initial_budget)
        yield "Lynceus", label, _lynceus(trees, job.initial_budget)
        yield "CherryPick", label, _cherrypick(trees, job.initial_budget)


def _lines_of_initial_budgets(job: Job) -> _Lines:
    for budget in job.initial_budgets:
        label = f"{budget:g} USD"
        yield "Nephele", label, _nephele(0, TREES[0], budget)
        yield "Lynceus", label, _lynceus(TREES[0], budget)
        yield "CherryPick", label, _cherrypick(TREES[0], budget)


def _lines_of_optimisers(job: Job) -> _Lines:
    yield job.title, "Nephele", _nephele(0, TREES[0], job.initial_budget)
    yield job.title, "Lynceus", _lynceus(TREES[0], job.initial_budget)
    yield job.title, "CherryPick", _cherrypick(TREES[0], job.initial_budget)
    yield job.title, "Random", _Spec("random", Goal.COST, NEPHELE_TRIALS, NEPHELE_SEEDS)
    nephele = _nephele(0, TREES[0], job.initial_budget)
    yield job.title, "Nephele, dropping*", replace(nephele, method=f"{nephele.method},dropping=true")


def _lines_of_horizons(job: Job) -> _Lines:
    for horizon in HORIZONS:
        yield job.title, f"horizon {horizon}", _nephele(horizon, TREES[0], job.initial_budget)


def _lines_of_fabulinus(job: Job) -> _Lines:
    yield job.title, "Fabulinus", _fabulinus("fabulinus")
    yield job.title, "FABOLAS", _fabulinus(f"fabolas:initial={FABULINUS_INITIAL},ignore_constraints=true")
    yield job.title, "EIc", _fabulinus(f"eic:initial={FABULINUS_INITIAL}", FABULINUS_INITIAL)
    yield job.title, "EI", _fabulinus(f"ei:initial={FABULINUS_INITIAL},ignore_constraints=true", FABULINUS_INITIAL)
    yield job.title, "Fabulinus, horizon 1*", _fabulinus("fabulinus:horizon=1")


_LINES_OF: Mapping[Experiment, Callable[[Job], _Lines]] = {
    Experiment.METHODS: _lines_of_methods,
    Experiment.FILTERS: _lines_of_filters,
    Experiment.TREES: _lines_of_trees,
    Experiment.INITIAL_BUDGETS: _lines_of_initial_budgets,
    Experiment.OPTIMISERS: _lines_of_optimisers,
    Experiment.HORIZONS: _lines_of_horizons,
    Experiment.FABULINUS: _lines_of_fabulinus,
}

# Methods from the fastest search to the slowest, by the longest start of their text.
_BY_EXPENSE = (
    *("random", "cherrypick", "lynceus", "nephele", "eic", "ei", "hyperband", "bohb", "trimtuner-dt", "trimtuner"),
    *("nephele:horizon=1", "nephele:horizon=2", "fabolas", "fabulinus", "fabulinus:horizon=1"),
)

_LONGEST = ("nephele:horizon=1", "nephele:horizon=2")


def _turn(search: Search) -> tuple[bool, int, int]:
    is_last = search.method.startswith(_LONGEST) and search.seed >= FIRST_SEED + TRIMTUNER_SEEDS
    return is_last, search.seed, _expense(search.method)


def _expense(method: str) -> int:
    return _BY_EXPENSE.index(max((start for start in _BY_EXPENSE if method.startswith(start)), key=len))
