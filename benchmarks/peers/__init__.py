"""The tools a user would pick instead, in the same replay: ``python -m benchmarks.peers --help``."""
