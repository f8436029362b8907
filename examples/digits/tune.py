"""Tunes the digits job for real on this machine in about a minute, then checks what the tuner promised."""

from __future__ import annotations

import math
import time

from train import FRACTIONS, HYPER_PARAMETERS, PRICE_PER_HOUR, THREADS, train

import trimtuner as tt

CONSTRAINTS = ["cost <= 0.00001 USD", "time <= 1s"]  # of one training on all data
TRIALS = 40
TUNING_SECONDS = 60  # where machine or trials are slow, this ends the search first
CONFIGURATIONS = len(THREADS) * math.prod(len(values) for values in HYPER_PARAMETERS.values())
MICRO = 1e6  # trainings this small cost millionths of a dollar
LINE = "{:>5}  {:<35}  {:>5}  {:>8}  {:>7}  {:>11}  {}"


def main() -> None:
    study = tt.Study(describe_space(), maximize="accuracy", constraints=CONSTRAINTS, seed=0)
    print(f"Reading digits: {CONFIGURATIONS} configurations, at most {TRIALS} trials.")
    print(f"Wanted: the most accurate one with {' and '.join(CONSTRAINTS)} when trained on all data.\n")
    tests = run_trials(study)
    best = study.recommend()
    print_recommendation(best)
    measured = train(best.config, 1)
    full_cost = cost_of(best.config, measured["time"])
    print_check(best, {**measured, "cost": full_cost})
    print_price_of_search(tests, full_cost)


def describe_space() -> tt.Space:
    parameters = {name: tt.Choice(values, scale="log") for name, values in HYPER_PARAMETERS.items()}
    machines = {
        name: tt.VM(vcpus=threads, memory_gib=2 * threads, price_per_hour=PRICE_PER_HOUR[name])
        for name, threads in THREADS.items()
    }
    return tt.Space(parameters, cloud=tt.Cloud(machines), fractions=FRACTIONS)


def run_trials(study: tt.Study) -> list[tuple[float, float]]:
    """The share of the data and the cost in USD of each trial, which is printed when it ends."""
    warm_up()
    print(LINE.format("trial", "configuration", "data", "accuracy", "seconds", "µUSD so far", "best so far"))
    tests: list[tuple[float, float]] = []
    start = time.monotonic()
    while len(tests) < TRIALS and time.monotonic() - start < TUNING_SECONDS:
        trial = study.ask()
        measured = train(trial.config, trial.fraction)
        study.tell(trial, **measured)
        tests.append((trial.fraction, cost_of(trial.config, measured["time"])))
        print_trial(trial, measured, sum(cost for _, cost in tests), study.recommend())
    return tests


def warm_up() -> None:
    """Loads the data and starts the threads, so that the first trial does not pay for it."""
    smallest = {name: values[0] for name, values in HYPER_PARAMETERS.items()}
    train({**smallest, "vm_type": "cpu-2"}, FRACTIONS[0])


def cost_of(config: dict, seconds: float) -> float:
    return PRICE_PER_HOUR[config["vm_type"]] * seconds / 3600


def in_short(config: dict) -> str:
    units, rate, batch = (config[name] for name in HYPER_PARAMETERS)
    return f"{config['vm_type']}  units {units:<3}  rate {rate:<5}  batch {batch:<3}"


def print_trial(trial: tt.Trial, measured: dict, spent: float, best: tt.Recommendation) -> None:
    accuracy, seconds = f"{measured['accuracy']:.3f}", f"{measured['time']:.3f}"
    data = f"1/{round(1 / trial.fraction)}" if trial.fraction < 1 else "all"
    cells = [trial.number, in_short(trial.config), data, accuracy, seconds, f"{MICRO * spent:.1f}"]
    print(LINE.format(*cells, in_short(best.config)).rstrip(), flush=True)


def print_recommendation(best: tt.Recommendation) -> None:
    print(f"\nRecommended: {in_short(best.config)}")
    for constraint, probability in best.feasible.items():
        print(f"  holds {constraint:<20} with probability {probability:.0%}")


def print_check(best: tt.Recommendation, measured: dict) -> None:
    print("\nTrained once on all data to check:\n            predicted  (90 % interval)     measured")
    for name, unit, factor in [("accuracy", "", 1), ("time", "s", 1), ("cost", "µUSD", MICRO)]:
        predicted = getattr(best, name)
        interval = f"({factor * predicted.low:.3g} to {factor * predicted.high:.3g})"
        if best.is_measured:
            interval = "(tested already)"
        print(f"  {name:<8}  {factor * predicted:>9.3g}  {interval:<18}  {factor * measured[name]:>8.3g} {unit}")


def print_price_of_search(tests: list[tuple[float, float]], full_cost: float) -> None:
    """What was paid, against an estimate for training every configuration on all data."""
    spent = sum(cost for _, cost in tests)
    # Epochs are fixed, so cost grows in proportion to the data.
    everything = CONFIGURATIONS * sum(cost / fraction for fraction, cost in tests) / len(tests)
    print(
        f"\nThe search cost {MICRO * spent:.0f} µUSD, as much as {spent / full_cost:.1f} full trainings of its answer."
    )
    print(f"Training all {CONFIGURATIONS} configurations in full: about {MICRO * everything:.0f} µUSD,")
    print(f"{everything / spent:.0f} times as much (an estimate: the mean trial above, scaled up to all of the data).")


if __name__ == "__main__":
    main()
