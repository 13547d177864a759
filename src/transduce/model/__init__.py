"""Sequence-to-sequence models: token ids in, logits out. Knows nothing of text or training."""
