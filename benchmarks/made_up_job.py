"""A job whose every number is a formula, to show and to measure what is shown: its table, its job file, its record."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np

from trimtuner.jobs.studies import JobStudy
from trimtuner.problem.history import Measurement, Outcome, Trial
from trimtuner.records import Owner
from trimtuner.records.change import Change
from trimtuner.records.record import Record

FRACTIONS = (0.02, 0.1, 0.25, 0.5, 1.0)
VCPUS = {"m5.large": 2, "m5.xlarge": 4, "m5.2xlarge": 8, "c5.2xlarge": 8}
PRICES = {"m5.large": 0.096, "m5.xlarge": 0.192, "m5.2xlarge": 0.384, "c5.2xlarge": 0.34}
COUNTS = (1, 2, 4, 8)
RATES = (0.0003, 0.001, 0.003, 0.01)
BATCHES = (32, 128, 512)

_TABLE = """title = "made up"
snapshots = true
failed = "failed"
[configuration]
vm_type = "vm_type"
vm_count = "vm_count"
learning_rate = "learning_rate"
batch_size = "batch_size"
dropout = "dropout"
[fraction]
column = "fraction"
full = 1.0
[metrics]
accuracy = "accuracy"
time = "time"
[price_per_hour]
column = "price_per_hour"
[problem]
maximize = "accuracy"
"""

_JOB = """name: {name}
goal: {{maximize: accuracy}}
constraints: ["cost <= 1.20 USD", "time <= 50min"]
budget: {{money: {money} USD, trials: {trials}}}
data: {{fractions: [0.02, 0.1, 0.25, 0.5, 1], snapshots: true}}
parameters:
  learning_rate: {{values: [0.0003, 0.001, 0.003, 0.01], scale: log}}
  batch_size: {{values: [32, 128, 512], scale: log}}
  dropout: {{values: {dropouts}}}
cloud:
  catalog: aws
  vm_type: [m5.large, m5.xlarge, m5.2xlarge, c5.2xlarge]
  vm_count: [1, 2, 4, 8]
run:
  command: [python3, train.py, "--rate={{learning_rate}}", "--batch={{batch_size}}", "--data={{fraction}}"]
  timeout: 12h
engine: {{type: replay, table: measured.csv, pace: {pace}, parallel: {parallel}}}
search: {{method: {method}, seed: 3}}
"""


def accuracy_of(config: dict, fraction: float) -> float:
    """Better with data, best at a rate of 0.003, a little worse with large batches, many machines and dropout."""
    distance = math.log10(config["learning_rate"] / 0.003)
    batch = math.log2(config["batch_size"] / 32) / 4
    machines = math.log2(config["vm_count"])
    best = 0.95 - 0.10 * distance**2 - 0.02 * batch - 0.004 * machines - 0.03 * config["dropout"]
    return best - 0.12 * (1 - fraction**0.3)


def seconds_of(config: dict, fraction: float) -> float:
    """Faster on more cores, but not in proportion; a little overhead however small the data."""
    cores = VCPUS[config["vm_type"]] * (1.3 if config["vm_type"].startswith("c5") else 1.0)
    work = 42_000 * fraction * (1 + 24 / config["batch_size"])
    return 40 + work / cores**0.85 / config["vm_count"] ** 0.75


def failure_of(config: dict, fraction: float) -> str:
    """The small machine has no memory for large batches of much data."""
    is_short = config["vm_type"] == "m5.large" and config["batch_size"] == 512 and fraction >= 0.5
    return "oom" if is_short else ""


def write_job(folder: Path, **changes: object) -> Path:
    """The job file, with the table that its trials are played from."""
    settings = {"name": "speech", "method": "trimtuner", "trials": 40, "money": 40, "pace": 4000, "parallel": 3}
    settings = {**settings, "dropouts": [0.0, 0.5], **changes}
    lines = ["vm_type,vm_count,learning_rate,batch_size,dropout,fraction,accuracy,time,price_per_hour,failed"]
    for place in itertools.product(VCPUS, COUNTS, RATES, BATCHES, settings["dropouts"], FRACTIONS):
        *chosen, fraction = place
        config = dict(zip(("vm_type", "vm_count", "learning_rate", "batch_size", "dropout"), chosen, strict=True))
        price = config["vm_count"] * PRICES[config["vm_type"]]
        told = (f"{accuracy_of(config, fraction):.5f}", f"{seconds_of(config, fraction):.2f}", price)
        lines.append(",".join(map(str, (*place, *told, failure_of(config, fraction)))))
    (folder / "measured.csv").write_text("\n".join(lines))
    (folder / "measured.toml").write_text(_TABLE)
    path = folder / f"{settings['name']}.yaml"
    path.write_text(_JOB.format(**settings))
    return path


def fill_record(path: Path, trials: int, seed: int = 0) -> None:
    """A record of so many trials that ended, some failed, some pre-empted first.

    Their places are random whatever the method: none is asked, as the page shows trials and not who chose them.
    """
    of = JobStudy.at(path)
    _, memory = of.open_to_run()
    record, pool = memory.record, of.problem.space.pool()
    generator = np.random.default_rng(seed)
    record.register(Owner("filled", "here", 1, "0"))
    places = list(itertools.product(range(len(pool)), FRACTIONS))
    with _one_transaction(record):
        for number, place in enumerate(generator.permutation(len(places))[:trials].tolist()):
            position, fraction = places[place]
            recommended = None if number < 20 else (pool.configuration(places[0][0]), 1.0)
            trial = Trial(number, pool.configuration(position), fraction, (), "model", recommended)
            assert record.claim(trial, 0.001, "filled")
            _end(record, trial, float(generator.random()))


@contextmanager
def _one_transaction(record: Record) -> Iterator[None]:
    """Thousands of changes at the price of one: each by itself waits for the disk."""
    with record._writer.transaction() as connection:
        change = Change(connection, record._study, record._ledger)
        record._change = lambda: nullcontext(change)
        try:
            yield
        finally:
            del record._change
        record._writer.keep(connection, change.seal())


def _end(record: Record, trial: Trial, luck: float) -> None:
    """One trial in twelve fails, one in ten is pre-empted once."""
    config, number = dict(trial.config), trial.number
    seconds = seconds_of(config, trial.fraction) * (0.95 + 0.1 * luck)
    cost = seconds / 3600 * config["vm_count"] * PRICES[config["vm_type"]] / 100
    attempt, before = 1, 0.0
    record.started(number, attempt, "handle")
    if luck > 0.9:
        attempt = record.retry(number, attempt, cost / 3, seconds / 3, "preempted", 0.001)
        before = cost / 3
        record.started(number, attempt, "handle")
    failed = "oom" if luck < 0.05 else "exit" if luck < 0.08 else None
    metrics = {"accuracy": accuracy_of(config, trial.fraction) + 0.01 * (luck - 0.5), "time": seconds, "cost": cost}
    measured = () if failed else (Measurement(config, trial.fraction, metrics),)
    record.finish(Outcome(trial, measured, failed, before + cost, seconds), attempt, cost)
