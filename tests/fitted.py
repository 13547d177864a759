"""Values for the tests of confidence and calibration."""

import numpy as np

RANDOM = np.random.default_rng(1)


VALUES = np.column_stack(
    (RANDOM.normal(-1, 0.5, 4000), RANDOM.normal(2, 0.5, 4000), RANDOM.normal(0, 0.2, 4000))
)


LOGITS = 0.3 + 3 * (VALUES[:, 0] + 1) - (VALUES[:, 1] - 2)  # the third feature says nothing


GOOD = RANDOM.random(4000) < 1 / (1 + np.exp(-LOGITS))


CHRF = np.where(GOOD, RANDOM.uniform(50, 100, 4000), RANDOM.uniform(0, 40, 4000))
CHRF += 1e-3 * RANDOM.random(4000)
