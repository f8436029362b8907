"""What the engines of these tests need."""

from places import cloud, ray_cluster, shared_cloud, shared_slurm, slurm_cluster

__all__ = ["cloud", "ray_cluster", "shared_cloud", "shared_slurm", "slurm_cluster"]
