"""What the papers print, as data with its source: TrimTuner (MASCOTS 2020) and the thesis on Nephele and Fabulinus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# The sizes of the data sets against the full one in Tables 6.3 to 6.5, as shares of 60,000 images.
SUBSAMPLED = {"1K": 1 / 60, "6K": 0.1, "15K": 0.25, "30K": 0.5}

# Rows (full data) and columns (a smaller data set) of those tables: (time limit met, accuracy limit met).
COMBINATIONS = ((True, True), (False, True), (True, False), (False, False))
COMBINATION_NAMES = ("time and accuracy", "accuracy only", "time only", "neither")


@dataclass(frozen=True)
class Count:
    """A number of configurations and the percentage printed beside it; a bare zero has no percentage."""

    number: int
    percent: str | None = None


def _zeroes(*cells: Count | None) -> tuple[Count, ...]:
    return tuple(cell or Count(0) for cell in cells)


# Table I: values of the parameters, by our names for them; then vCPUs, GB and numbers of machines of each type.
TABLE_I: Mapping[str, tuple[float | int | str, ...]] = {
    "learning_rate": (1e-3, 1e-4, 1e-5),
    "batch_size": (16, 256),
    "mode": ("sync", "async"),
    "data-set size (%)": (1.67, 10.0, 25.0, 50.0, 100.0),
}
TABLE_I_MACHINES: Mapping[str, tuple[int, int, tuple[int, ...]]] = {
    "t2.small": (1, 2, (8, 16, 32, 48, 64, 80)),
    "t2.medium": (2, 4, (4, 8, 16, 24, 32, 40)),
    "t2.xlarge": (4, 16, (2, 4, 8, 12, 16, 20)),
    "t2.2xlarge": (8, 32, (1, 2, 4, 6, 8, 10)),
}

# Table 5.1, as printed: the second learning rate is a slip.
TABLE_5_1: Mapping[str, tuple[float | int | str, ...]] = {
    "vm_type": tuple(TABLE_I_MACHINES),
    "cores": (8, 16, 32, 48, 64, 80),
    "learning_rate": (1e-3, 1e-3, 1e-5),
    "batch_size": (16, 256),
    "mode": ("sync", "async"),
    "data-set size (%)": (1.67, 10.0, 25.0, 50.0, 100.0),
}

# Table II: feasible at full data, and those of them within 5 % of the best feasible accuracy.
TABLE_II: Mapping[str, tuple[Count, Count]] = {
    "cnn": (Count(111, "38.5"), Count(39, "13.54")),
    "rnn": (Count(178, "61.8"), Count(28, "9.72")),
    "multilayer": (Count(161, "55.8"), Count(29, "10.07")),
}

# Table III: mean minutes to recommend the next trial, and their standard deviation (mean of the three jobs).
TABLE_III: Mapping[str, tuple[float, float]] = {
    "trimtuner-gp": (18.65, 2.31),
    "trimtuner-dt": (1.36, 0.28),
    "fabolas": (13.96, 1.88),
    "eic": (1.17, 0.07),
    "eic-usd": (1.17, 0.07),
}

# Table IV: minutes to recommend the next trial on rnn, with Gaussian processes and with trees.
TABLE_IV: Mapping[str, tuple[float, float]] = {
    "no filter": (125.76, 3.69),
    "CEA 1 %": (5.94, 1.07),
    "CEA 10 %": (16.85, 1.72),
    "CEA 20 %": (28.65, 2.05),
    "DIRECT 10 %": (36.18, 2.63),
    "CMA-ES 10 %": (30.87, 2.26),
    "random 10 %": (16.53, 1.62),
}


@dataclass(frozen=True)
class InitialSample:
    """A row of Table 6.1: how many trials the initial budget buys on average."""

    budget_usd: float
    any_fraction: Count
    full_data: Count


TABLE_6_1: Mapping[str, InitialSample] = {
    "cnn": InitialSample(5.0, Count(20, "1.4"), Count(8, "2.8")),
    "rnn": InitialSample(1.0, Count(117, "8.13"), Count(44, "15.3")),
    "multilayer": InitialSample(2.0, Count(100, "6.9"), Count(32, "11.1")),
}

# Section 6.2, text: percentage of all 1,440 trials that each initial budget buys on average, at any fraction.
INITIAL_PERCENT: Mapping[str, Mapping[float, float]] = {
    "cnn": {2.5: 0.76, 5.0: 1.39, 10.0: 2.71},
    "rnn": {0.25: 2.29, 0.5: 4.31, 1.0: 8.13},
    "multilayer": {0.5: 1.94, 1.0: 3.61, 2.0: 6.94},
}

# Table 6.2: trials with accuracy >= 0.85 and time <= 300 s, at any fraction and at full data.
TABLE_6_2: Mapping[str, tuple[Count, Count]] = {
    "cnn": (Count(208, "14.44"), Count(61, "21.18")),
    "rnn": (Count(264, "18.33"), Count(104, "36.1")),
    "multilayer": (Count(110, "7.64"), Count(58, "20.14")),
}

CrossTable = tuple[tuple[Count, ...], ...]

# Tables 6.3, 6.4, 6.5: rows are full data, columns the smaller data set, both in the order of COMBINATIONS.
CROSS_TABLES: Mapping[str, Mapping[str, CrossTable]] = {
    "cnn": {
        "1K": (
            _zeroes(Count(0), None, Count(61, "21.18"), None),
            _zeroes(Count(12, "4.17"), None, Count(105, "36.46"), None),
            _zeroes(None, None, Count(50, "17.36"), None),
            _zeroes(None, None, Count(60, "20.83"), None),
        ),
        "6K": (
            _zeroes(Count(5, "1.74"), None, Count(56, "19.44"), None),
            _zeroes(Count(43, "14.94"), Count(28, "9.72"), Count(40, "13.88"), Count(6, "2.08")),
            _zeroes(None, None, Count(50, "17.36"), None),
            _zeroes(None, Count(3, "1.04"), Count(27, "9.38"), Count(30, "10.42")),
        ),
        "15K": (
            _zeroes(Count(20, "6.94"), None, Count(41, "14.24"), None),
            _zeroes(Count(25, "8.69"), Count(73, "25.35"), Count(13, "4.51"), Count(6, "2.08")),
            _zeroes(None, None, Count(50, "17.36"), None),
            _zeroes(None, Count(6, "2.08"), Count(16, "5.56"), Count(38, "13.19")),
        ),
        "30K": (
            _zeroes(Count(35, "12.15"), None, Count(26, "9.03"), None),
            _zeroes(Count(7, "2.43"), Count(97, "33.68"), Count(9, "3.13"), Count(4, "1.39")),
            _zeroes(None, None, Count(50, "17.36"), None),
            _zeroes(None, Count(6, "2.08"), Count(16, "5.56"), Count(38, "13.19")),
        ),
    },
    "rnn": {
        "1K": (
            _zeroes(None, None, Count(104, "36.11"), None),
            _zeroes(None, None, Count(6, "2.08"), None),
            _zeroes(None, None, Count(175, "60.77"), None),
            _zeroes(None, None, Count(3, "1.04"), None),
        ),
        "6K": (
            _zeroes(Count(10, "3.47"), None, Count(94, "32.64"), None),
            _zeroes(Count(3, "1.04"), None, Count(3, "1.04"), None),
            _zeroes(None, None, Count(175, "60.77"), None),
            _zeroes(None, None, Count(3, "1.04"), None),
        ),
        "15K": (
            _zeroes(Count(55, "19.09"), None, Count(49, "17.01"), None),
            _zeroes(Count(5, "1.74"), None, Count(1, "0.35"), None),
            _zeroes(None, None, Count(175, "60.77"), None),
            _zeroes(None, None, Count(3, "1.04"), None),
        ),
        "30K": (
            _zeroes(Count(83, "28.82"), None, Count(21, "7.29"), None),
            _zeroes(Count(4, "1.39"), Count(2, "0.69"), None, None),
            _zeroes(None, None, Count(175, "60.77"), None),
            _zeroes(None, None, Count(2, "0.69"), Count(1, "0.35")),
        ),
    },
    "multilayer": {
        "1K": (
            _zeroes(None, None, Count(58, "20.14"), None),
            _zeroes(None, None, Count(22, "7.64"), None),
            _zeroes(None, None, Count(178, "61.80"), None),
            _zeroes(None, None, Count(30, "10.42"), None),
        ),
        "6K": (
            _zeroes(None, None, Count(58, "20.14"), None),
            _zeroes(Count(1, "0.35"), None, Count(21, "7.29"), None),
            _zeroes(None, None, Count(178, "61.80"), None),
            _zeroes(None, None, Count(30, "10.42"), None),
        ),
        "15K": (
            _zeroes(Count(11, "3.82"), None, Count(47, "16.32"), None),
            _zeroes(Count(7, "2.43"), None, Count(15, "5.21"), None),
            _zeroes(None, None, Count(178, "61.80"), None),
            _zeroes(None, None, Count(30, "10.42"), None),
        ),
        "30K": (
            _zeroes(Count(26, "9.03"), None, Count(32, "11.11"), None),
            _zeroes(Count(6, "2.08"), Count(3, "1.04"), Count(12, "4.17"), Count(1, "0.35")),
            _zeroes(None, None, Count(178, "61.80"), None),
            _zeroes(Count(1, "0.35"), None, Count(25, "8.68"), Count(4, "1.39")),
        ),
    },
}
CROSS_TABLE_NUMBER = {"cnn": "6.3", "rnn": "6.4", "multilayer": "6.5"}

# Table 7.1, full data: within the cost limit; accuracy above 0.85; both.
TABLE_7_1: Mapping[str, tuple[Count, Count, Count]] = {
    "cnn": (Count(111, "38.54"), Count(178, "61.8"), Count(69, "23.96")),
    "rnn": (Count(178, "61.8"), Count(110, "38.19"), Count(42, "14.58")),
    "multilayer": (Count(161, "55.8"), Count(80, "27.78"), Count(25, "8.68")),
}

# Sections 6.3.1 and 6.3.2: how much dearer the best full-data trial is than the best of all, and the fraction of that.
CHEAPER_WITH_LESS_DATA: Mapping[str, tuple[float, float]] = {"cnn": (4.1, 0.1), "rnn": (2.1, 0.25)}

# Section 6.4: exploration cost to reach this CNO, as multiples of Nephele's.
CNO_LEVEL: Mapping[str, float] = {"cnn": 10.0, "rnn": 2.0}
LYNCEUS_COST: Mapping[str, float] = {"cnn": 1.75, "rnn": 1.2}
CHERRYPICK_COST: Mapping[str, float] = {"cnn": 2.13, "rnn": 3.67}

# Section 7.3: by how many per cent Fabulinus reduces the cost of the optimisation process.
FABULINUS_CUTS: Mapping[str, Mapping[str, float]] = {
    "cnn": {"fabolas": 35.52, "eic": 58.34, "ei": 88.24},
    "rnn": {"fabolas": 40.0, "eic": 80.0, "ei": 79.7},
    "multilayer": {"fabolas": 32.26, "eic": 83.93, "ei": 86.6},
}

# Section 7.3: the same of the initial samples, against EI_c.
FABULINUS_INITIAL_CUTS: Mapping[str, float] = {"cnn": 3.0, "rnn": 9.0, "multilayer": 22.2}

# Section 7.3: how many times as long Fabulinus takes, with the time to ask; not all are printed.
FABULINUS_TIME: Mapping[str, Mapping[str, float]] = {
    "eic": {"cnn": 1.06, "rnn": 6.46, "multilayer": 1.69},
    "fabolas": {"rnn": 4.71, "multilayer": 2.52},
    "ei": {"rnn": 12.4},
}

# Section 6.5.1, cnn: total time with a horizon, as multiples of that without.
LOOKAHEAD_TIME: Mapping[int, float] = {1: 2.34, 2: 3.83}

# Section IV-A of the TrimTuner paper: to 90 % of the optimum, as multiples of TrimTuner (DT), the largest of the jobs.
COST_TO_90: Mapping[str, float] = {"eic": 50.0, "eic-usd": 10.0}
TIME_TO_90: Mapping[str, float] = {"eic": 65.0, "eic-usd": 15.0}
COST_PER_STEP: Mapping[str, float] = {"eic": 10.0, "eic-usd": 2.4}

# Section IV-B: to 90 % of the optimum on rnn, as multiples of CEA's.
FILTER_COST: Mapping[str, float] = {"CMA-ES": 3.62, "DIRECT": 7.0}
CEA_AND_TREES_FASTER = 117.0
