"""What holds for all tests: one thread, so that they don't disturb each other, and laws without a stopwatch."""

import hypothesis
import torch

torch.set_num_threads(1)
hypothesis.settings.register_profile("transduce", deadline=None)
hypothesis.settings.load_profile("transduce")
