"""A perceptron with two hidden layers on Fashion-MNIST; the fraction is the share of the steps, not of the pictures.

The learning rate falls along a cosine to nothing at the end of the run, whatever its length: a short run is therefore
not the beginning of a long one. Rates that are too high for their momentum really diverge.

On two cores two workers share the steps and average their weights from time to time. Matrix products on two threads
wait for each other so often that any other process on the machine would spoil their times.
"""

import itertools
import math
import mmap
import multiprocessing
import os
import threading
import time
from contextlib import suppress

import numpy as np
from measuring import Failed, Machine
from pictures import SIDE, read_fashion
from threadpoolctl import threadpool_limits

NAME = "epochs"
PARAMETERS = {
    "vm_type": ["cpu-1", "cpu-2"],
    "width": [24, 80, 256],  # units in each hidden layer
    "batch_size": [16, 64, 256],
    "learning_rate": [0.02, 0.06, 0.2, 0.6, 2.0],
    "momentum": [0.0, 0.9],
}
FRACTIONS = [1 / 32, 1 / 8, 1 / 4, 1 / 2, 1.0]
MACHINES = {"cpu-1": Machine(1, None, 0.0232), "cpu-2": Machine(2, None, 0.0384)}
METRICS = ["accuracy"]
SEEDS = [0, 1]

PICTURES = 12_000  # of 60,000, so that a long run sees each of them many times
EPOCHS = 12
ROUND = 1500  # pictures of each worker between two averages
KINDS = 10
MEAN = np.float32(0.3)  # of the pixels, about
HUGE = 1e3  # a loss; guessing has one of 2.3


def load() -> list[np.ndarray]:
    """Pictures and kinds of clothes, for training and for the test."""
    pictures, kinds, test_pictures, test_kinds = read_fashion()
    return [pictures[:PICTURES] - MEAN, kinds[:PICTURES], test_pictures - MEAN, test_kinds]


def train(data: list[np.ndarray], config: dict, fraction: float, seed: int) -> dict:
    workers = MACHINES[config["vm_type"]].cores
    steps = round(PICTURES * EPOCHS * fraction / config["batch_size"] / workers)
    team = Team(workers, count_values(config["width"]), steps)
    forking = multiprocessing.get_context("fork")
    job = (data, config, steps, seed, team)
    others = [forking.Process(target=work_quietly, args=(*job, rank)) for rank in range(1, workers)]
    cores = os.sched_getaffinity(0)
    for other in others:
        other.start()
    try:
        values = work(*job, 0)
    finally:
        os.sched_setaffinity(0, cores)
        for other in others:
            other.join()
    weights, biases = list_layers(values, config["width"])
    right = run_network(weights, biases, data[2])[-1].argmax(axis=1) == data[3]
    # The slowest of each round, in CPU time: on a core of its own the time on the wall, but for what others take away.
    return {"accuracy": float(right.mean()), "time": float(team.seconds.max(axis=0).sum())}


class Team:
    """Workers in processes of their own, and the memory that they share."""

    def __init__(self, workers: int, size: int, steps: int) -> None:
        self.workers = workers
        self.states = share(workers, 2, size)  # values and velocities
        self.seconds = share(workers, steps)
        self._barrier = multiprocessing.get_context("fork").Barrier(workers)

    def average(self, state: np.ndarray, rank: int) -> None:
        """Replaces the state of this worker by the mean of all, once they are all here."""
        if self.workers > 1:
            self.states[rank] = state
            self._wait()
            state[:] = self.states.mean(axis=0)
            self._wait()  # nobody writes the next state while another still reads this one

    def give_up(self) -> None:
        self._barrier.abort()

    def _wait(self) -> None:
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            raise Failed("diverged") from None


def share(*shape: int) -> np.ndarray:
    """Zeros in memory that forked processes see, too."""
    return np.frombuffer(mmap.mmap(-1, 4 * math.prod(shape)), np.float32).reshape(shape)


def work_quietly(*job: object) -> None:
    with suppress(Failed):  # then the first worker fails, too, and tells
        work(*job)


def work(data: list[np.ndarray], config: dict, steps: int, seed: int, team: Team, rank: int) -> np.ndarray:
    """One worker: steps on its own pictures from the common start, averaged with the others after every round."""
    if team.workers > 1:
        os.sched_setaffinity(0, {rank})
    pictures, kinds = data[:2]
    rng = np.random.default_rng(seed)
    state = np.zeros((2, count_values(config["width"])), np.float32)
    values, velocity = state
    weights, biases = list_layers(values, config["width"])
    for weight in weights:
        weight[:] = rng.normal(0, np.sqrt(2 / len(weight)), weight.shape)
    slopes = np.empty_like(values)
    slope_layers = list_layers(slopes, config["width"])
    order = np.concatenate([rng.permutation(PICTURES) for _ in range(EPOCHS)])
    batches = order[: steps * team.workers * config["batch_size"]].reshape(steps, team.workers, -1)[:, rank]
    in_round = max(1, ROUND // config["batch_size"])
    with np.errstate(all="ignore"), threadpool_limits(1):
        for first in range(0, steps, in_round):
            start = time.process_time()
            for step in range(first, min(first + in_round, steps)):
                batch = batches[step]
                loss = find_slopes(weights, biases, pictures[batch], kinds[batch], *slope_layers)
                if not loss < HUGE:  # true of nan, too
                    team.give_up()
                    raise Failed("diverged")
                velocity *= np.float32(config["momentum"])
                velocity += slopes
                values -= np.float32(config["learning_rate"] * (1 + np.cos(np.pi * step / steps)) / 2) * velocity
            team.average(state, rank)
            team.seconds[rank, first] = time.process_time() - start
    return values


def list_sizes(width: int) -> list[int]:
    return [SIDE * SIDE, width, width, KINDS]


def count_values(width: int) -> int:
    return sum((size + 1) * following for size, following in itertools.pairwise(list_sizes(width)))


def list_layers(values: np.ndarray, width: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Weights and biases of each layer, as views of the one vector in which they stand."""
    weights, biases, place = [], [], 0
    for size, following in itertools.pairwise(list_sizes(width)):
        weights.append(values[place : place + size * following].reshape(size, following))
        place += size * following
        biases.append(values[place : place + following])
        place += following
    return weights, biases


def run_network(weights: list[np.ndarray], biases: list[np.ndarray], pictures: np.ndarray) -> list[np.ndarray]:
    """What goes into each layer, and what comes out of the last."""
    layers = [pictures]
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        layers.append(np.maximum(layers[-1] @ weight + bias, 0))
    return [*layers, layers[-1] @ weights[-1] + biases[-1]]


def find_slopes(
    weights: list[np.ndarray],
    biases: list[np.ndarray],
    pictures: np.ndarray,
    kinds: np.ndarray,
    of_weights: list[np.ndarray],
    of_biases: list[np.ndarray],
) -> float:
    """Writes the slopes of the cross entropy into of_weights and of_biases, and returns the cross entropy."""
    *layers, scores = run_network(weights, biases, pictures)
    rows = np.arange(len(kinds))
    scores -= scores.max(axis=1, keepdims=True)
    errors = np.exp(scores)
    sums = errors.sum(axis=1, keepdims=True)
    loss = float((np.log(sums[:, 0]) - scores[rows, kinds]).mean())
    errors /= sums
    errors[rows, kinds] -= 1
    errors /= len(kinds)
    for place in reversed(range(len(weights))):
        np.matmul(layers[place].T, errors, out=of_weights[place])
        errors.sum(axis=0, out=of_biases[place])
        if place:
            errors = (errors @ weights[place].T) * (layers[place] > 0)
    return loss
