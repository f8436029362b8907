"""A job rehearsed: its trials come from a table of measurements, everything else is as in earnest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from written_jobs import trimtuner

PRICES = {"small": 0.36, "large": 0.72}
FRACTIONS = (0.1, 1.0)

JOB = """
name: rehearsal
goal: {maximize: accuracy}
constraints: ["cost <= 0.01 USD"]
budget: {money: 5 USD, trials: 24}
data: {fractions: [0.1, 1]}
parameters:
  x: {values: [0, 1, 2]}
cloud:
  vms:
    small: {vcpus: 1, memory_gib: 2, price_per_hour: 0.36}
    large: {vcpus: 2, memory_gib: 4, price_per_hour: 0.72}
run: {command: [no-such-program, "{x}"], timeout: 10min}
engine: {type: replay, table: measured.csv, pace: 10000, parallel: 3}
search: {method: random, seed: 1}
"""


def seconds(vm_type: str, fraction: float) -> float:
    return 100.0 * fraction / (2 if vm_type == "large" else 1)


def write_rehearsal(folder: Path, **changes: str) -> Path:
    rows = ["vm_type,x,fraction,accuracy,time,price_per_hour,failed"]
    for vm_type, price in PRICES.items():
        for x in range(3):
            for fraction in FRACTIONS:
                failed = "oom" if (vm_type, x, fraction) == ("small", 2, 1.0) else ""
                accuracy = 0.5 + 0.1 * x * fraction
                rows.append(f"{vm_type},{x},{fraction},{accuracy},{seconds(vm_type, fraction)},{price},{failed}")
    (folder / "measured.csv").write_text("\n".join(rows))
    (folder / "measured.toml").write_text(
        'title = "made up"\nsnapshots = false\nfailed = "failed"\n'
        '[configuration]\nvm_type = "vm_type"\nx = "x"\n[fraction]\ncolumn = "fraction"\nfull = 1.0\n'
        '[metrics]\naccuracy = "accuracy"\ntime = "time"\n[price_per_hour]\ncolumn = "price_per_hour"\n'
        '[problem]\nmaximize = "accuracy"\n'
    )
    text = JOB
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    path = folder / "job.yaml"
    path.write_text(text)
    return path


def test_a_rehearsal_measures_what_the_table_says_charges_it_and_runs_no_command(tmp_path):
    path = write_rehearsal(tmp_path)
    trimtuner("run", path, "-q")
    rows = json.loads(trimtuner("trials", path, "--json").stdout)
    assert len(rows) == 6  # at full data, which is where the random method looks
    states = {(row["config"]["vm_type"], row["config"]["x"]): row["state"] for row in rows}
    assert states.pop(("small", 2)) == "oom"
    assert set(states.values()) == {"ok"}
    for row in rows:
        vm_type, fraction = row["config"]["vm_type"], row["fraction"]
        assert row["cost"] == pytest.approx(seconds(vm_type, fraction) * PRICES[vm_type] / 3600)
    best = json.loads(trimtuner("best", path, "--json").stdout)
    assert best["config"] == {"x": 2, "vm_type": "large", "vm_count": 1}


def test_a_rehearsal_without_what_tells_its_jobs_apart_says_so(tmp_path):
    done = trimtuner("run", write_rehearsal(tmp_path, **{"x: {": "y: {", '"{x}"': '"{y}"'}), "-q", check=False)
    assert done.returncode == 2
    assert "tells jobs apart by 'x', which is no parameter here" in done.stderr


def test_keys_of_another_engine_are_refused_by_name(tmp_path):
    done = trimtuner("validate", write_rehearsal(tmp_path, pace="image: ami-0123, pace"), check=False)
    assert done.returncode == 2
    assert "engine.image: it is for type aws, this is replay" in done.stderr
