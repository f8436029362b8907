"""Measures the digits job at every configuration and every fraction, into src/trimtuner/tables/digits.csv.

Run it from anywhere with `python benchmarks/tables/measure_digits.py`; it takes about a quarter of an hour on
two cores. A row is written as soon as it is measured, so after an interruption the same command carries on.
"""

import csv
import itertools
import math
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "digits"))

import train as job  # noqa: E402 (an example is no package: the line above is how one imports it)

TABLE = ROOT / "src" / "trimtuner" / "tables" / "digits.csv"
PARAMETERS = ["vm_type", *job.HYPER_PARAMETERS]
COLUMNS = [*PARAMETERS, "fraction", "accuracy", "time", "price_per_hour"]
SEEDS = [0, 1]
ORDER_SEED = 0
DISTURBED = 1.25  # so many times the time of its likes, and a row is measured again
ROUNDS_AGAIN = 5


def main() -> None:
    warm_up()
    done = read_rows()
    write_rows(list(done.values()))  # so that new rows never follow a line cut short
    measure_tests([tested for tested in list_tests() if identify(tested) not in done])
    for _ in range(ROUNDS_AGAIN):
        disturbed = find_disturbed(read_rows())
        measure_tests([tested for tested in list_tests() if identify(tested) in disturbed])
    rows = read_rows()
    write_rows([rows[key] for key in sorted(rows)])
    print(f"{len(rows)} rows in {TABLE.relative_to(ROOT)}")


def list_tests() -> list[dict]:
    """Every configuration at every fraction, in random order: a busy minute must not hit one region alone."""
    values = [list(job.THREADS), *job.HYPER_PARAMETERS.values(), job.FRACTIONS]
    tests = [dict(zip([*PARAMETERS, "fraction"], chosen, strict=True)) for chosen in itertools.product(*values)]
    order = np.random.default_rng(ORDER_SEED).permutation(len(tests))
    return [tests[position] for position in order]


def identify(row: dict) -> tuple:
    """What was tested, the same for a row about to be measured and for one read from the file."""
    return (row["vm_type"], *(float(row[name]) for name in [*job.HYPER_PARAMETERS, "fraction"]))


def warm_up() -> None:
    """Loads the data and starts the threads, so that the first measurement does not pay for it."""
    for vm_type in job.THREADS:
        config = {name: values[-1] for name, values in job.HYPER_PARAMETERS.items()}
        job.train({**config, "vm_type": vm_type}, job.FRACTIONS[0])


def measure_tests(tests: list[dict]) -> None:
    start = time.monotonic()
    with TABLE.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        for number, tested in enumerate(tests, 1):
            writer.writerow(measure(tested))
            file.flush()
            elapsed = time.monotonic() - start
            left = elapsed / number * (len(tests) - number)
            print(f"\r{number}/{len(tests)} measured, about {left / 60:.1f} min left ", end="", flush=True)
    print()


def measure(tested: dict) -> dict:
    runs = [job.train(tested, tested["fraction"], seed) for seed in SEEDS]
    accuracy = sum(run["accuracy"] for run in runs) / len(runs)
    # The work is the same whatever the seed: the longer time only says that the machine was busy elsewhere.
    seconds = min(run["time"] for run in runs)
    return {
        **tested,
        "accuracy": round(accuracy, 5),
        "time": float(f"{seconds:.4g}"),
        "price_per_hour": job.PRICE_PER_HOUR[tested["vm_type"]],
    }


def find_disturbed(rows: dict[tuple, dict]) -> set[tuple]:
    """Rows much slower than those that differ in the learning rate alone, which does not change the work."""
    shortest: dict[tuple, float] = {}
    for row in rows.values():
        key = identify({**row, "learning_rate": 0})
        shortest[key] = min(shortest.get(key, math.inf), float(row["time"]))
    return {
        key
        for key, row in rows.items()
        if float(row["time"]) > DISTURBED * shortest[identify({**row, "learning_rate": 0})]
    }


def read_rows() -> dict[tuple, dict]:
    """What is measured so far, the shortest time of each; a line cut short by an interruption is left out."""
    if not TABLE.exists():
        return {}
    lines = TABLE.read_text(encoding="utf-8").splitlines(keepends=True)
    rows: dict[tuple, dict] = {}
    for row in csv.DictReader(line for line in lines if line.endswith("\n")):
        known = rows.setdefault(identify(row), row)
        if float(row["time"]) < float(known["time"]):
            rows[identify(row)] = row
    return rows


def write_rows(rows: list[dict]) -> None:
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    unfinished = TABLE.with_suffix(".csv.new")
    with unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    unfinished.replace(TABLE)


if __name__ == "__main__":
    main()
