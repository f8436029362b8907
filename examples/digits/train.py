"""A real training job: a two-layer perceptron that reads handwritten digits, also when they are off centre.

Every picture of scikit-learn's digits appears five times, as it is and moved by one pixel in each direction: without
the moved ones the smallest network would be as good as the largest, and there would be nothing to tune.
"""

import argparse
import json
import time
import warnings
from functools import cache

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

HYPER_PARAMETERS = {
    "hidden_units": [32, 64, 128, 256, 512],  # in each of the two hidden layers
    "learning_rate": [0.001, 0.003, 0.01, 0.03, 0.1, 0.5],  # the first is too slow, the last often diverges
    "batch_size": [32, 128, 512],
}
THREADS = {"cpu-1": 1, "cpu-2": 2}  # a machine is the number of threads the matrix products may use
PRICE_PER_HOUR = {"cpu-1": 0.0232, "cpu-2": 0.0464}  # USD
FRACTIONS = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1]  # shares of the training pictures
MOVES = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)]


def train(config: dict, fraction: float, seed: int = 0) -> dict:
    """Accuracy on the fixed test pictures, and seconds of training with `fraction` of the training ones."""
    train_pictures, test_pictures, train_digits, test_digits = split_pictures()
    kept = round(len(train_pictures) * fraction)
    rows, digits = move_pictures(train_pictures[:kept], train_digits[:kept])
    model = MLPClassifier(
        hidden_layer_sizes=(config["hidden_units"], config["hidden_units"]),
        solver="sgd",
        learning_rate_init=config["learning_rate"],
        batch_size=min(config["batch_size"], len(rows)),
        max_iter=8,  # epochs; fixed, so that time grows with the data
        n_iter_no_change=9,  # never stop early
        random_state=seed,
    )
    with threadpool_limits(THREADS[config["vm_type"]]), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is fixed on purpose
        start = time.perf_counter()
        model.fit(rows, digits)
        seconds = time.perf_counter() - start
    return {"accuracy": float(model.score(*move_pictures(test_pictures, test_digits))), "time": seconds}


@cache
def split_pictures() -> list[np.ndarray]:
    """Pictures and digits, each for training and for the test; always the same split and the same order."""
    pictures, digits = load_digits(return_X_y=True)
    pictures = pictures.reshape(-1, 8, 8) / 16  # grey values run from 0 to 16
    return train_test_split(pictures, digits, test_size=500, stratify=digits, random_state=0)


def move_pictures(pictures: np.ndarray, digits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every picture with its moved copies, as rows of 64 pixels, and the digit of each row."""
    padded = np.pad(pictures, ((0, 0), (1, 1), (1, 1)))
    moved = [padded[:, 1 + down : 9 + down, 1 + right : 9 + right] for down, right in MOVES]
    return np.concatenate(moved).reshape(-1, 64), np.tile(digits, len(MOVES))


def main() -> None:
    """All that trimtuner asks of a command: take what was chosen as options, print one line at the end."""
    parser = argparse.ArgumentParser()
    kinds = {"vm-type": str, "hidden-units": int, "learning-rate": float, "batch-size": int, "fraction": float}
    for name, kind in kinds.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    chosen = vars(parser.parse_args())
    print("::metric " + json.dumps({"accuracy": train(chosen, chosen["fraction"])["accuracy"]}))


if __name__ == "__main__":
    main()
