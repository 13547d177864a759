"""The learning rate of an update (equation 3 of the paper)."""

from transduce.config.schema import TrainConfig


def learning_rate(step: int, train: TrainConfig, d_model: int) -> float:
    """factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5), for updates counted from 1.

    With train.cooldown, the last updates before train.steps fall linearly towards zero.
    """
    rate = train.learning_rate * d_model**-0.5 * min(step**-0.5, step * train.warmup**-1.5)
    if train.cooldown:
        rate *= min(1.0, (train.steps + 1 - step) / train.cooldown)
    return rate
