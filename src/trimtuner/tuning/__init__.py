"""Which parts go together to make a method, and the pure function that asks."""
