"""Training: loss, learning rate, updates, checkpoints, the loop, and the start and end of a run."""
