"""Settings that every test shares."""

import os

from hypothesis import settings

settings.register_profile("default", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("full", deadline=None, derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
