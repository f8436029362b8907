"""A job on spot from the command line: its risk is in what is recommended, and is said to be."""

import json
import math
from pathlib import Path

import pytest

from written_jobs import trimtuner, write_job

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the local engine is for Linux")


def test_the_recommendation_says_that_interruptions_are_in_its_time_and_cost(tmp_path):
    path = write_job(tmp_path, trials=3, fractions=[1], values=[0.4, 0.6], method="random")
    text = path.read_text().replace(
        "cloud:\n", "cloud:\n  market: spot\n  spot: {discount: 0.5, interruptions_per_hour: 1000}\n"
    )
    path.write_text(text)
    trimtuner("run", path, "--quiet")
    best = json.loads(trimtuner("best", path, "--json").stdout)
    trials = json.loads(trimtuner("trials", path, "--json").stdout)
    (measured,) = [one for one in trials if one["config"] == best["config"]]
    load = 1000.0 * measured["time"] / 3600.0
    expected = measured["time"] * math.expm1(load) / load
    assert best["estimates"]["time"]["mean"] == pytest.approx(expected, rel=1e-6)
    assert "measured time, interruptions added:" in trimtuner("best", path).stdout
    assert "measured accuracy:" in trimtuner("best", path).stdout
