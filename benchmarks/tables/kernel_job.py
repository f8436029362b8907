"""Kernel ridge regression that reads handwritten digits: MNIST, fetched by examples/mnist/get_data.py.

The kernel is exp(-gamma |x - y|²), on pixels from 0 to 1. Its centres are either all training pictures (exact: the time
grows with the cube of the data), or a random sample of them (Nyström), which cannot be larger than the data is.
"""

from pathlib import Path

import numpy as np
from measuring import Failed, Machine, clock
from scipy import linalg

NAME = "kernel"
PICTURES = 6000  # of all the data
PARAMETERS = {
    "vm_type": ["cpu-1", "cpu-2"],
    "method": ["nystroem", "exact"],
    "centres": [50, 100, 200, 400, 800, PICTURES],  # the last stands for all there are, at any fraction
    "gamma": [0.002, 0.01, 0.03],
    "alpha": [0.001, 0.1, 1, 10],
}
FRACTIONS = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1]
MACHINES = {"cpu-1": Machine(1, None, 0.03), "cpu-2": Machine(2, None, 0.05)}
METRICS = ["accuracy"]
SEEDS = [0, 1]
TESTED = 4000
DIGITS = 10
PRECISION = np.float32(2e-7)  # of numbers in 32 bits, and a little more
DATA = Path(__file__).resolve().parents[2] / "examples" / "mnist" / "data"


def allowed(config: dict) -> bool:
    return (config["method"] == "exact") == (config["centres"] == PICTURES)


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pictures and digits for training, pictures and digits for the test."""
    return (*read("train", PICTURES), *read("t10k", TESTED))


def read(part: str, most: int) -> tuple[np.ndarray, np.ndarray]:
    pictures = np.fromfile(DATA / f"{part}-images-idx3-ubyte", np.uint8)[16:].reshape(-1, 784)
    digits = np.fromfile(DATA / f"{part}-labels-idx1-ubyte", np.uint8)[8:]
    chosen = np.random.default_rng(0).permutation(len(digits))[:most]
    return pictures[chosen] / np.float32(255), digits[chosen]


def train(data: tuple[np.ndarray, ...], config: dict, fraction: float, seed: int) -> dict:
    pictures, digits, tested_pictures, tested_digits = data
    kept = round(PICTURES * fraction)
    start = clock()
    centres, weights = fit(pictures[:kept], digits[:kept], config, seed)
    seconds = clock() - start
    guessed = np.argmax(kernel(tested_pictures, centres, config["gamma"]) @ weights, axis=1)
    return {"accuracy": float(np.mean(guessed == tested_digits)), "time": seconds}


def fit(pictures: np.ndarray, digits: np.ndarray, config: dict, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The centres, and the weight of each for each digit."""
    gamma, alpha = config["gamma"], np.float32(config["alpha"])
    targets = np.where(digits[:, None] == np.arange(DIGITS), np.float32(1), np.float32(-1))
    if config["method"] == "exact":
        centres, square = pictures, kernel(pictures, pictures, gamma)
        square[np.diag_indices_from(square)] += alpha
    else:
        if config["centres"] > len(pictures):
            raise Failed("error")  # there are not so many to choose from
        centres = pictures[np.random.default_rng(seed).permutation(len(pictures))[: config["centres"]]]
        features = kernel(centres, pictures, gamma)
        square, targets = features @ features.T + alpha * kernel(centres, centres, gamma), features @ targets
        square[np.diag_indices_from(square)] += PRECISION * np.trace(square)
    try:
        factor = linalg.cho_factor(square, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        raise Failed("diverged") from None  # not positive any more, in the precision there is
    return centres, linalg.cho_solve(factor, targets, check_finite=False)


def kernel(left: np.ndarray, right: np.ndarray, gamma: float) -> np.ndarray:
    values = left @ right.T
    values *= 2
    values -= np.sum(left**2, axis=1)[:, None]
    values -= np.sum(right**2, axis=1)
    values *= np.float32(gamma)
    return np.exp(values, out=values)
