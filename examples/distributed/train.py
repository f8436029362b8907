"""Workers, a parameter server and a book-keeper train one network together, as in the papers' campaign, in the small.

trimtuner starts this on every machine of a trial (``nodes: all``) and says who is who: workers come first, the first
helper is the parameter server, the second the book-keeper. A worker draws a batch at random, works out the gradient and
sends it; the parameter server moves the weights and sends them back: when all workers have answered (sync), or each at
once (async). The book-keeper looks at the test pictures from time to time, and ends the run when enough of the data was
seen and the accuracy has settled. The first worker reports it, and keeps the weights where a retry finds them.

Plain sockets and numpy, no torch.distributed: its collectives have no place for a worker that does not wait for the
others, and what there is to send is one array.
"""

import argparse
import importlib.util
import json
import math
import os
import socket
import struct
import threading
import time
from pathlib import Path

import numpy as np

TEST_PICTURES, UNITS = 500, 32
SEEN = 0.9  # of the data, at least once, before a run may end
LOOKS_TO_SETTLE, SETTLED_WITHIN = 3, 0.005
LONGEST_SECONDS = 60.0
SAVED_EVERY = 20  # batches of the first worker


# The network: two layers, all weights in one array


def begin_weights() -> np.ndarray:
    chance = np.random.default_rng(0)
    first, second = chance.normal(0, 0.15, (64, UNITS)), chance.normal(0, 0.15, (UNITS, 10))
    return np.concatenate([first.ravel(), np.zeros(UNITS), second.ravel(), np.zeros(10)]).astype(np.float32)


def layers(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    sizes = np.cumsum([64 * UNITS, UNITS, UNITS * 10])
    first, bias, second, last = np.split(weights, sizes)
    return first.reshape(64, UNITS), bias, second.reshape(UNITS, 10), last


def gradient(weights: np.ndarray, pictures: np.ndarray, digits: np.ndarray) -> np.ndarray:
    first, bias, second, last = layers(weights)
    hidden = np.maximum(pictures @ first + bias, 0)
    scores = np.exp((given := hidden @ second + last) - given.max(axis=1, keepdims=True))
    wrong = scores / scores.sum(axis=1, keepdims=True)
    wrong[np.arange(len(digits)), digits] -= 1
    wrong /= len(digits)
    back = (wrong @ second.T) * (hidden > 0)
    parts = (pictures.T @ back, back.sum(axis=0), hidden.T @ wrong, wrong.sum(axis=0))
    return np.concatenate([part.ravel() for part in parts]).astype(np.float32)


def accuracy(weights: np.ndarray, pictures: np.ndarray, digits: np.ndarray) -> float:
    first, bias, second, last = layers(weights)
    found = (np.maximum(pictures @ first + bias, 0) @ second + last).argmax(axis=1)
    return float((found == digits).mean())


def read_digits() -> tuple[np.ndarray, np.ndarray]:
    """Handwritten digits, always in the same order: from a file beside this one, or out of scikit-learn."""
    file = Path(__file__).with_name("digits.csv.gz")
    if not file.exists():
        found = importlib.util.find_spec("sklearn")
        file = Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz"
    rows = np.loadtxt(file, delimiter=",", dtype=np.float32)
    rows = rows[np.random.default_rng(1).permutation(len(rows))]
    return rows[:, :-1] / 16, rows[:, -1].astype(int)


def batches_to_see(share: float, pictures: int, batch: int) -> int:
    """Batches, drawn at random, after which that share of the pictures should be seen (thesis, App. A, eq. 5)."""
    return math.ceil(math.log(1 - share) / (batch * math.log((pictures - 1) / pictures)))


# A line between two processes: a JSON object, and an array where there is one


class Line:
    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = connection.makefile("rwb")

    def send(self, told: dict, array: np.ndarray | None = None) -> None:
        data = b"" if array is None else array.tobytes()
        head = json.dumps(told).encode()
        self._file.write(struct.pack("!II", len(head), len(data)) + head + data)
        self._file.flush()

    def receive(self) -> tuple[dict, np.ndarray]:
        sizes = self._file.read(8)
        if len(sizes) < 8:
            raise ConnectionResetError("the other side has left")
        head, data = (self._file.read(size) for size in struct.unpack("!II", sizes))
        return json.loads(head), np.frombuffer(data, np.float32)

    def ask(self, told: dict, array: np.ndarray | None = None) -> tuple[dict, np.ndarray]:
        self.send(told, array)
        return self.receive()


def call(place: tuple[str, int]) -> Line:
    """The parameter server, which may not have come up yet."""
    while True:
        try:
            return Line(socket.create_connection(place))
        except OSError:
            time.sleep(0.05)


# Who does what


class ParameterServer:
    """Holds the weights; a thread for every line, one of them at a time."""

    def __init__(self, workers: int, rate: float, mode: str) -> None:
        self._workers, self._rate, self._mode = workers, rate, mode
        self._changed = threading.Condition()
        self._weights: np.ndarray | None = None  # until the first worker brings them
        self._batches = 0
        self._waiting: list[np.ndarray] = []  # gradients of this step
        self._step = 0
        self._over: dict = {}

    def serve(self, place: tuple[str, int]) -> None:
        with socket.create_server(place, backlog=self._workers + 1) as server:
            lines = [Line(server.accept()[0]) for _ in range(self._workers + 1)]
        threads = [threading.Thread(target=self._answer, args=(line,)) for line in lines]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _answer(self, line: Line) -> None:
        try:
            while True:
                told, array = line.receive()
                with self._changed:
                    getattr(self, f"_{told['what']}")(told, array)
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._weights is not None)
                    answer = {"batches": self._batches, **self._over}
                line.send(answer, self._weights)
        except ConnectionError:
            return  # it was told that the run is over, and left

    def _begin(self, told: dict, weights: np.ndarray) -> None:
        if len(weights):
            self._weights, self._batches = weights, told["batches"]

    def _gradient(self, _: dict, gradient: np.ndarray) -> None:
        if self._mode == "async":
            self._move(gradient, 1)
            return
        step = self._step
        self._waiting.append(gradient)
        if len(self._waiting) == self._workers:
            self._move(np.mean(self._waiting, axis=0), self._workers)
            self._waiting, self._step = [], step + 1
            self._changed.notify_all()
        self._changed.wait_for(lambda: self._step > step or self._over)

    def _move(self, gradient: np.ndarray, batches: int) -> None:
        self._weights = self._weights - np.float32(self._rate) * gradient
        self._batches += batches

    def _look(self, told: dict, _: np.ndarray) -> None:
        if told["over"]:
            self._over = {"accuracy": told["accuracy"]}


def work(line: Line, rank: int, chosen: argparse.Namespace) -> None:
    """Send gradients until the run is over; the first worker brings the weights, keeps them, and reports."""
    pictures, digits = read_digits()
    count = max(round((len(digits) - TEST_PICTURES) * chosen.fraction), 1)
    pictures, digits = pictures[TEST_PICTURES:][:count], digits[TEST_PICTURES:][:count]
    kept = chosen.checkpoint / "weights.npz"
    answer, weights = line.ask(*(restored(kept) if rank == 0 else ({"what": "begin"},)))
    chance, sent = np.random.default_rng([rank, answer["batches"]]), 0
    while "accuracy" not in answer:
        rows = chance.integers(count, size=chosen.batch_size)
        answer, weights = line.ask({"what": "gradient"}, gradient(weights, pictures[rows], digits[rows]))
        sent += 1
        if rank == 0 and sent % SAVED_EVERY == 0:
            save(kept, weights, answer["batches"])
    if rank == 0:
        print("::metric " + json.dumps({"accuracy": answer["accuracy"]}), flush=True)


def restored(kept: Path) -> tuple[dict, np.ndarray]:
    if not kept.exists():
        return {"what": "begin", "batches": 0}, begin_weights()
    with np.load(kept) as found:
        print(f"going on after {found['batches']} batches", flush=True)
        return {"what": "begin", "batches": int(found["batches"])}, found["weights"]


def save(kept: Path, weights: np.ndarray, batches: int) -> None:
    """Whole or not at all: the machine may be taken away at any time."""
    draft = kept.with_name("draft.npz")
    np.savez(draft, weights=weights, batches=batches)
    os.replace(draft, kept)


def keep_book(line: Line, chosen: argparse.Namespace) -> None:
    """Look at the test pictures until enough was seen and accuracy has settled, or time is up."""
    pictures, digits = read_digits()
    enough = batches_to_see(SEEN, max(round((len(digits) - TEST_PICTURES) * chosen.fraction), 2), chosen.batch_size)
    pictures, digits = pictures[:TEST_PICTURES], digits[:TEST_PICTURES]
    seen: list[float] = []
    begin, is_over, told = time.monotonic(), False, 0.0
    while not is_over:
        time.sleep(chosen.look)
        answer, weights = line.ask({"what": "look", "over": False, "accuracy": told})
        told = accuracy(weights, pictures, digits)
        seen = [*seen, told] if answer["batches"] >= enough else []
        is_settled = (
            len(seen) > LOOKS_TO_SETTLE and max(seen[-LOOKS_TO_SETTLE:]) <= seen[-LOOKS_TO_SETTLE - 1] + SETTLED_WITHIN
        )
        is_over = is_settled or time.monotonic() - begin > LONGEST_SECONDS
        print(f"{answer['batches']} batches of {enough}, accuracy {told:.3f}", flush=True)
    line.ask({"what": "look", "over": True, "accuracy": told})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--mode", choices=["sync", "async"], required=True)
    parser.add_argument("--fraction", type=float, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--look", type=float, default=0.2, help="seconds between looks of the book-keeper")
    chosen = parser.parse_args()
    rank, port = int(os.environ["RANK"]), int(os.environ["MASTER_PORT"])
    workers = len(os.environ["TRIMTUNER_WORKERS"].split(","))
    server = os.environ["TRIMTUNER_HELPERS"].split(",")[0], port + workers
    if rank == workers:
        ParameterServer(workers, chosen.learning_rate, chosen.mode).serve(server)
    elif rank > workers:
        keep_book(call(server), chosen)
    else:
        work(call(server), rank, chosen)


if __name__ == "__main__":
    main()
