"""Trials as jobs of a Slurm cluster, from a login node, over the file system that its nodes share."""
