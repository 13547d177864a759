"""What holds for all tests: one thread, that none disturbs another, laws without a stopwatch, a cache of their own."""

import os
import tempfile
from pathlib import Path

import hypothesis
import torch

from forked import measure_quickly

os.environ.setdefault("MPLCONFIGDIR", str(Path.home() / ".cache" / "matplotlib"))  # whose list of fonts takes seconds
CACHE = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = CACHE.name
torch.set_num_threads(1)
measure_quickly()
hypothesis.settings.register_profile(
    "transduce",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("transduce")
