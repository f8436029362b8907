"""One hypothesis profile for all rooms: the same examples in every run, and no deadline on a shared machine."""

from hypothesis import settings

settings.register_profile("trimtuner", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("trimtuner")
