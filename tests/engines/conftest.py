"""What the engines of these tests need."""

from places import cloud, ray_cluster, shared_cloud

__all__ = ["cloud", "ray_cluster", "shared_cloud"]
