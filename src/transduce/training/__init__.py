"""From batches to weights: loss, schedule, update, checkpoints, the loop. Knows nothing of search or text."""
