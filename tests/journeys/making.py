"""From choices to a folder with a job file and its script, as a person would have written them."""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path

from journeys.choices import Journey, constraints_of, fractions_of, goal_of, has_prices, method_of

TRIALS_BEFORE, TRIALS = 4, 7  # of the first run, and of both
SEED = 3

# Anything can be chosen, so what is good is made of the words alone; a third of them fail where some are to fail.
TRAIN = """
import json, os, sys, time, zlib
from pathlib import Path

given = dict(word.split("=", 1) for word in sys.argv[1:])
fraction, trial = float(given.pop("fraction")), int(given.pop("trial"))
kept = given.pop("checkpoint", "")
given.pop("repeat", "")
smaller = [float(share) for share in given.pop("snapshots", "").split(",") if share]
with open("ran.txt", "a") as file:  # one line a start
    file.write(f"{trial} {os.getpid()}\\n")
if kept:
    Path(kept, "kept.txt").write_text("of an attempt")
goodness = [zlib.crc32(f"{name}={value}".encode()) / 2**32 for name, value in sorted(given.items())]
good = sum(goodness) / len(goodness)
time.sleep(float(os.environ["NAP"]))
fails, which = os.environ["FAILURES"], zlib.crc32(" ".join(sys.argv).encode()) % 3
if fails == "all":
    sys.exit("it never works")
if fails == "some" and which == 0:
    sys.exit(3)
if fails == "kinds" and which == 0:
    sys.exit(0)  # and says nothing
if fails == "kinds" and which == 1:
    print('::metric {"accuracy": "good"}')
    sys.exit(0)
noise = 0.02 * ((trial * 7919) % 11 - 5) / 5 if os.environ["NOISE"] == "some" else 0.0
for share in (*smaller, fraction):
    accuracy = min(max((0.4 + 0.5 * good) * share**0.1 + noise, 0.0), 1.0)
    told = {"accuracy": accuracy, "loss": 1.05 - accuracy, "size_mb": 10 + 80 * goodness[0], "further": trial / 3}
    print("::metric " + json.dumps({**told, "fraction": share}), flush=True)
"""

_PARAMETERS: dict[str, dict[str, object]] = {
    "list": {"x": {"values": [1, 2, 3]}},
    "names": {"x": {"values": ["1e-3", "no", "None", 'a b,"c"', "=ä"]}},
    "int": {"x": {"min": 1, "max": 5, "type": "int"}},
    "float": {"x": {"min": 0.0, "max": 1.0}, "y": {"min": -1.5, "max": 1.5, "type": "float"}},
    "log": {
        "x": {"min": 1e-5, "max": 0.1, "scale": "log"},
        "units": {"min": 8, "max": 4096, "scale": "log2", "type": "int"},
    },
    "conditional": {
        "optimizer": {"values": ["sgd", "adam"]},
        "momentum": {"min": 0.0, "max": 0.99, "when": "optimizer == 'sgd'"},
        "beta": {"values": [0.9, 0.99], "when": "optimizer == 'adam'"},
    },
    "constant": {"x": {"values": [1, 2, 3]}, "epochs": {"value": 2}, "kind": {"value": "tree"}},
    "yes or no": {"x": {"values": [True, False]}, "depth": {"values": ["none", 1, 2.5]}},
    "lists": {"x": {"values": [None, 1, 2]}, "layers": {"values": [[16, 2**53 + 1], [0.5], ["a b", None, True]]}},
}
_RUNNING: dict[str, tuple[dict[str, object], list[str]]] = {  # keys of the run, and words of the command
    "once": ({}, []),
    "repeats": ({"repeats": 2}, ["repeat={repeat}"]),
    "all nodes": ({"nodes": "all"}, []),
    "checkpoint": ({}, ["checkpoint={checkpoint}"]),
}
_DIGITS = {  # the space of the table that a replay plays
    "hidden_units": {"values": [32, 64, 128, 256, 512], "scale": "log"},
    "learning_rate": {"values": [1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 0.5], "scale": "log"},
    "batch_size": {"values": [32, 128, 512], "scale": "log"},
}
_OWN = {
    "cpu-1": {"vcpus": 1, "memory_gib": 2, "price_per_hour": 0.0232},
    "cpu-2": {"vcpus": 2, "memory_gib": 4, "price_per_hour": 0.0464},
}
_CLOUD: dict[str, dict[str, object]] = {
    "one": {"vms": {"only": {"vcpus": 1, "memory_gib": 1, "price_per_hour": 3.6}}},
    "own": {"vms": _OWN},
    "catalog": {"catalog": "builtin", "vm_type": ["c5.large", "m5.xlarge"], "region": "us-east-1"},
    "counts": {"vms": _OWN, "vm_count": {"min": 1, "max": 8, "rule": "vm_count * vcpus in [2, 4, 8]"}},
    "markets": {
        "vms": {name: {**vm, "spot_price_per_hour": 0.01} for name, vm in _OWN.items()},
        "market": ["on_demand", "spot"],
    },
    "helpers": {"vms": _OWN, "vm_type": ["cpu-1"], "vm_count": [1, 2], "helpers": ["cpu-2"]},
}


def write_journey(folder: Path, journey: Journey, storage: str | None, name: str = "journey") -> Path:
    """The job file, and the script that it runs; YAML takes JSON."""
    (folder / "train.py").write_text(TRAIN)
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(job_of(journey, storage, name), indent=1, ensure_ascii=False), encoding="utf-8")
    return path


def job_of(journey: Journey, storage: str | None, name: str) -> dict[str, object]:
    """The job as a value."""
    space = _space(journey)
    names = space.get("parameters") or ("kind", "number")
    words = [*(f"{one}={{{one}}}" for one in names), "fraction={fraction}", "trial={trial}"]
    keys, more = _RUNNING[str(journey["running"])]
    is_interrupted = journey["interruption"] in ("interrupt", "twice", "kill")
    played = {"table": "digits", "pace": 100} if journey["engine"] == "replay" else {}
    money = {"money": "5 USD"} if has_prices(journey["machines"]) else {}
    job = {
        "name": name,
        "goal": goal_of(journey["goal"]),
        "constraints": constraints_of(journey["goal"], journey["limits"]),
        "budget": {**money, "trials": TRIALS_BEFORE},
        "data": {"fractions": fractions_of(journey["shares"]), "snapshots": journey["shares"] == "snapshots"},
        **space,
        "run": {
            **keys,
            "command": [sys.executable, "train.py", *words, *more, "snapshots={snapshots}"],
            "timeout": "20s",
            "environment": {
                "NAP": "0.4" if is_interrupted else "0",
                "FAILURES": journey["failures"],
                "NOISE": journey["noise"],
            },
        },
        "engine": {"type": journey["engine"], **played, "parallel": journey["parallel"]},
        "search": {
            "method": method_of(journey["method"], journey["goal"], journey["limits"], journey["options"]),
            "seed": SEED,
        },
    }
    return job if storage is None else {**job, "storage": storage}


def grown(job: dict[str, object]) -> dict[str, object]:
    """The job with a parameter more, which was left alone until now."""
    space, run = job["parameters"], job["run"]
    added = {"more": {"values": [1, 2], "default": 1}}
    return {**job, "parameters": {**space, **added}, "run": {**run, "command": [*run["command"], "more={more}"]}}


def _space(journey: Journey) -> dict[str, object]:
    kind, size, machines = str(journey["parameters"]), journey["size"], str(journey["machines"])
    if kind == "configs":
        values = product(("a", "b", "c"), range(60) if size == "hundreds" else range(1))
        price = {"price_per_hour": 0.72} if has_prices(machines) else {}
        return {"configs": [{"kind": one, "number": other, **price} for one, other in values]}
    more = {"few": {}, "hundreds": {"n": {"min": 1, "max": 60, "type": "int"}}, "millions": _many()}[str(size)]
    parameters = {**_PARAMETERS[kind], **more}
    if (kind, size, machines) == ("list", "hundreds", "own"):
        parameters = dict(_DIGITS)
    return {"parameters": parameters, **({"cloud": _CLOUD[machines]} if machines != "none" else {})}


def _many() -> dict[str, object]:
    """Ten to the seventh."""
    return {f"p{number}": {"values": list(range(10))} for number in range(7)}
