"""A linear classifier by stochastic gradient descent, on random Fourier features of handwritten digits (MNIST).

The features stand for a Gaussian kernel: the more there are, and the narrower it is, the more the model can learn, and
the more it needs to see. Each of the ten digits is told from the others by a model of its own; cores share them.
"""

import warnings

import numpy as np
from measuring import Machine, clock
from pictures import SIDE, read_digits
from sklearn.linear_model import SGDClassifier

NAME = "linear"
PARAMETERS = {
    "vm_type": ["cpu-1", "cpu-2"],
    "features": [80, 200, 500, 1200],
    "gamma": [0.02, 0.06, 0.2],  # of the kernel: the higher, the narrower
    "alpha": [1e-6, 3e-5, 1e-3],  # of the regularisation
    "schedule": ["optimal", "constant"],  # of the learning rate
}
FRACTIONS = [1 / 16, 1 / 4, 1 / 2, 1.0]
MACHINES = {"cpu-1": Machine(1, None, 0.0226), "cpu-2": Machine(2, None, 0.0362)}
METRICS = ["accuracy"]
SEEDS = [0]

PICTURES = 12_000  # of all the data
EPOCHS = 3
CONSTANT_RATE = 0.1
TESTED = 5_000


def load() -> list[np.ndarray]:
    """Pictures and digits, for training and for the test."""
    pictures, digits, test_pictures, test_digits = read_digits()
    return [pictures[:PICTURES], digits[:PICTURES], test_pictures[:TESTED], test_digits[:TESTED]]


def train(data: list[np.ndarray], config: dict, fraction: float, seed: int) -> dict:
    pictures, digits, test_pictures, test_digits = data
    kept = round(PICTURES * fraction)
    rng = np.random.default_rng(seed)
    start = clock()
    directions = rng.normal(0, np.sqrt(2 * config["gamma"]), (SIDE * SIDE, config["features"])).astype(np.float32)
    phases = rng.uniform(0, 2 * np.pi, config["features"]).astype(np.float32)
    model = SGDClassifier(
        loss="hinge",
        alpha=config["alpha"],
        learning_rate=config["schedule"],
        eta0=CONSTANT_RATE,
        max_iter=EPOCHS,
        tol=None,
        n_jobs=MACHINES[config["vm_type"]].cores,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the number of epochs is fixed on purpose
        model.fit(expand(pictures[:kept], directions, phases), digits[:kept])
    seconds = clock() - start
    return {"accuracy": float(model.score(expand(test_pictures, directions, phases), test_digits)), "time": seconds}


def expand(pictures: np.ndarray, directions: np.ndarray, phases: np.ndarray) -> np.ndarray:
    return np.cos(pictures @ directions + phases) * np.float32(np.sqrt(2 / len(phases)))
