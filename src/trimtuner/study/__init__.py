"""The loop: ask, run, tell."""
