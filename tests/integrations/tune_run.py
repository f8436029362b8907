"""A real Tuner on a small Ray of its own, with a fake training: prints as JSON what came of it.

Run by test_ray_tune.py in a process of its own, because a process has one Ray, and other tests have theirs.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from pathlib import Path

from trimtuner.engines.ray.surroundings import TOKEN_FILE, prepare_to_start


def space():
    import trimtuner as tt

    cloud = tt.Cloud({"small": tt.VM(vcpus=1, memory_gib=1, price_per_hour=1.0)})
    return tt.Space({"width": tt.Choice([1, 2, 3, 4])}, cloud=cloud, fractions=[0.5, 1])


def train(config):
    """Wider is better and dearer, an hour for each on all of the data, which the widest has no room for."""
    from ray import tune

    share = config["fraction"]
    if config["width"] == 4 and share == 1:
        raise MemoryError
    tune.report({"accuracy": share * config["width"] / 4, "time": 3600.0 * share * config["width"]})


def main(folder: Path) -> None:
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    os.environ[TOKEN_FILE] = str(token)
    prepare_to_start()
    import ray
    from ray import tune

    from trimtuner.integrations.ray_tune import TrimTunerSearch

    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=80 * 2**20, _temp_dir=str(folder / "ray"))
    search = TrimTunerSearch(space(), metric="accuracy", constraints=["cost <= 2.5"])
    tuner = tune.Tuner(
        train,
        tune_config=tune.TuneConfig(search_alg=search, num_samples=-1, max_concurrent_trials=1, reuse_actors=True),
        run_config=tune.RunConfig(storage_path=str(folder), name="run", verbose=0),
    )
    results = tuner.fit()
    best = search.recommendation()
    history = search.study.history
    again = TrimTunerSearch(space(), metric="accuracy", constraints=["cost <= 2.5"])
    again.restore_from_dir(str(folder / "run"))
    report = {
        "trials": [[result.config, result.error is not None] for result in results],
        "failed": [outcome.failed for outcome in history.outcomes if outcome.failed],
        "config": dict(best.config),
        "cost": best.cost,
        "restored": again.study.history == history,
    }
    ray.shutdown()
    print(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
