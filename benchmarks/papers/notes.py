"""What was seen of claims, by the claim's name: what the figures alone do not say. To be read again after every run."""

from __future__ import annotations

from collections.abc import Mapping

ABOUT_SHARES = (
    "Why a filter matters here, and in the other direction than in the paper: without one, what is learnt for each "
    "dollar is most on the smallest fractions, so that nearly all trials go there, and 44 of them cost a small part of "
    "what filtered ones do. CEA is highest on large fractions, where accuracy is: the less it keeps, the more data the "
    "trials have. So a search without a filter is short of money, not of merit: the line with three times the trials "
    "shows where it gets for about as much."
)

_FIRST_RUN = (
    "TrimTuner's protocol first pays for a run on half of the data, 0.86 of a full run on cnn and 0.50 on rnn, and our "
    "EIc recommends what its model predicts from its first full-data run on; the default starts on 1/60 of the data"
)
_FAST_PROCESSES = "our processes ask in about 0.1 CPU seconds where theirs took 19 minutes: little is left to save"
_SAME_TRIALS = (
    "EIc holds the chance to keep the limit on cost, so it asks for nothing dear either: on the same histories (three "
    "seeds, 78 asks on each job) EIc/USD named the same trial 36 (cnn) and 42 times (rnn), and what it named was 1.3 "
    "and 1.5 times cheaper in all"
)
_SHARES = "without a filter trials go to the smallest fractions and cost little each: see below Fig. 4"
_OWN_TIME = "asking takes us fractions of a CPU second, and took them minutes"
_FEW_SEEDS = "seeds differ more than the two models do: ten of them cannot tell a factor of two from none"
_FITTING = "most of an ask of ours is the fit of the models, which no filter spares; theirs was the acquisition"
_DESIGN = (
    "nearly all of the money goes into the initial samples, which a search pays before a model guides it: what is "
    "found soon after them costs what they did"
)
_DESIGN_TREES = f"{_DESIGN}, whatever the number of trees"
_SMALL_START = "Nephele's initial samples are spread over the fractions, and the smaller ones cost little"
_OUTSIDE = "what breaks a limit is named by luck only: FABOLAS does not look at limits"

SEEN: Mapping[str, str] = {
    "cost-to-90-eic": _FIRST_RUN,
    "cost-to-90-eic-usd": _FIRST_RUN,
    "time-to-90-eic": _FIRST_RUN,
    "time-to-90-eic-usd": _FIRST_RUN,
    "step-eic": "EIc's trials are on all of the data, TrimTuner's on the fractions of the row on the mean fraction",
    "step-eic-usd": _SAME_TRIALS,
    "step-eic-against-usd": _SAME_TRIALS,
    "mean-fraction": (
        "on cnn the small fractions say more about full data, so that a dollar learns more there; the quarter is one "
        "figure for three jobs"
    ),
    "fabolas-worst": "it recommends the most accurate, which costs more than the limit",
    "trees-as-good": _FEW_SEEDS,
    "filter-CMA-ES": (
        "CEA keeps what is accurate, which is on more data and dearer; CMA-ES looks for the acquisition itself, whose "
        "best is on small fractions. It is there sooner for the first time, and fewer of its searches stay there"
    ),
    "filter-DIRECT": "as with CMA-ES, the row above",
    "no-filter-best": _SHARES,
    "fewer-worse": _SHARES,
    "share-kept": _SHARES,
    "asks-gp-dt": _FAST_PROCESSES,
    "asks-fabolas-dt": f"the abstract says 65 times, Table III a sixth of that; {_FAST_PROCESSES}",
    "asks-fabolas-eic": "FABOLAS fits twelve sampled sets of hyper-parameters and scores five times the candidates",
    "asks-gp-fabolas": "our TrimTuner (GP) fits the likeliest hyper-parameters, and FABOLAS samples them as theirs did",
    "asks-dt-eic": "our EIc takes a hundredth of a CPU second, with one process on the 288 candidates at full data",
    "asks-none-cea": _FITTING,
    "asks-direct-cea": "DIRECT asks for one candidate at a time, where CEA scores all of its own at once",
    "asks-cmaes-cea": "CMA-ES asks for a handful of candidates at a time, where CEA scores all of its own at once",
    "asks-cea-random": "the CEA itself costs next to nothing, in theirs as in ours",
    "asks-none-gp-cea-dt": f"{_FAST_PROCESSES}; {_FITTING}",
    "more-trees-nephele": _DESIGN_TREES,
    "more-trees": _DESIGN_TREES,
    "more-trees-rnn": _DESIGN_TREES,
    "initial-budget-others": f"{_DESIGN}; a quarter of them is enough for our models to go on",
    "initial-budget-nephele": _DESIGN,
    "cheaper-with-less-data": "the tables are those of the thesis, to the last count",
    "initial-samples": (
        "on the published cnn table 5 USD buy 25 runs at full data, and not the 8 that the thesis prints: see Table 6.1"
    ),
    "initial-cno": _SMALL_START,
    "nephele-lynceus": _SMALL_START,
    "nephele-cherrypick": f"{_SMALL_START}; with trees our CherryPick does about as well as Lynceus",
    "random-dearer": "random search also tests on small fractions, where the cheap ones are",
    "cheaper-after-ten": "the best at full data, all that Lynceus may recommend, costs 4.1 times the best of all",
    "cherrypick-worst": f"{_DESIGN}, so that two methods with the same samples end alike",
    "lookahead": f"{_DESIGN}: little is left for a longer view to save",
    "horizon-2": f"{_DESIGN}: little is left for a longer view to save or to lose",
    "lookahead-time-1": _OWN_TIME,
    "lookahead-time-2": _OWN_TIME,
    "fabulinus-eic": "its hundred trials are on less than all of the data, EIc's on all of it",
    "fabulinus-fabolas": (
        "FABOLAS too counts what is learnt for each dollar and tests on small fractions: both cost about the same"
    ),
    "fabulinus-ei": "its hundred trials are on less than all of the data, EI's on all of it and as dear as any",
    "fabulinus-to-90": (
        "the initial samples alone, nine configurations at four fractions, cost more on cnn than EIc needs in all; and "
        "a hundred trials are far more than either needs"
    ),
    "fabulinus-initial": (
        "on the published cnn table the four smaller fractions cost 1.9 times a full run, so nothing can be saved "
        "there; on rnn they cost 0.9"
    ),
    "fabulinus-time-eic": _OWN_TIME,
    "fabulinus-time-fabolas": _OWN_TIME,
    "fabulinus-time-ei": _OWN_TIME,
    "limits-fabulinus": "it names nothing that is not within the limit with P ≥ 0.99; that chance is a model's",
    "limits-eic": "it has tested on all of the data, where the limit is meant",
    "limits-fabolas": _OUTSIDE,
    "letter-cost-to-90-eic": _FIRST_RUN,
    "letter-cost-to-90-eic-usd": _FIRST_RUN,
    "letter-step-eic": "as of our own form above: the trials are on small fractions",
    "letter-step-eic-usd": _SAME_TRIALS,
    "letter-mean-fraction": "to the letter or not, what is learnt for a dollar is most on small fractions",
    "letter-trees-as-good": _FEW_SEEDS,
    "letter-no-filter-best": _SHARES,
    "letter-fewer-worse": _SHARES,
    "letter-share-kept": _SHARES,
}
