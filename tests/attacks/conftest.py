"""The engines under attack are those of the conformance suite, with what they need."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "engines"))

from places import cloud, ray_cluster, shared_cloud, shared_slurm, slurm_cluster

__all__ = ["cloud", "ray_cluster", "shared_cloud", "shared_slurm", "slurm_cluster"]
