"""Properties are tried on the same examples in every run, however slow the machine is."""

from hypothesis import settings

settings.register_profile("tilelab", max_examples=100, deadline=None, derandomize=True)
settings.load_profile("tilelab")
